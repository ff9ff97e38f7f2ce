"""`st-paragram train`: train a model of one of the families."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from st_paragram.core.families import family_named, training_kinds

if TYPE_CHECKING:
    from st_paragram.core.encoding.record import TrainingRecord
    from st_paragram.learning.training.family import TrainingKind
    from st_paragram.learning.training.run import TrainingRun

DESCRIPTION = "Train a model. KIND is the kind of training; `st-paragram train KIND --help` shows the options of each."
EPILOG = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each kind of training; the family of the one that is called is imported, and no other."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND", parser_class=_filled_later(type(parser)))
    for name, (_, about) in training_kinds().items():
        kinds.add_parser(name, help=about, formatter_class=parser.formatter_class).kind = name


def _filled_later(parser_class: type[argparse.ArgumentParser]) -> Any:  # noqa: ANN401 - a class of parsers
    """A class of parsers that get the options of their `kind` when they are first used."""

    class KindParser(parser_class):  # type: ignore[valid-type, misc]
        kind = ""

        def fill(self) -> None:
            if self.kind:
                kind, self.kind = _kind(self.kind), ""
                self.description, self.epilog = kind.description, kind.epilog
                kind.add_options(self)

        def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # noqa: ANN401
            self.fill()
            parsed: tuple[Any, list[str]] = super().parse_known_args(args, namespace)
            return parsed

    return KindParser


def _kind(name: str) -> TrainingKind:
    family, _ = training_kinds()[name]
    kind: TrainingKind = family_named(family).kinds[name]
    return kind


def run(arguments: argparse.Namespace) -> int:
    """Train, or print what would be done; returns the exit status."""
    run = _kind(arguments.kind).run(arguments)
    if arguments.plan:
        run.check()
        print(run.shown())
        return 0
    if getattr(arguments, "tune", False):
        from st_paragram.families.psp.tune import tune as train
    else:
        from st_paragram.learning.training.run import run_training as train
    record = train(run)
    print(_text(record, run))
    return 0


def _text(record: TrainingRecord, run: TrainingRun) -> str:
    """What came of a run, as text."""
    before, after = (100 * score.correlation.pearson for score in record.scores)
    hint = "" if run.development else " (rough built-in pairs, to see that it learns; --dev takes your own)"
    lines = [f"{record.scores[0].data}, Pearson x 100: {before:.1f} before training, {after:.1f} after{hint}"]
    lines += [
        f"{each.data}, translations found {each.model}: {100 * each.accuracy:.1f} %" for each in record.translations
    ]
    rate = f"{record.seconds:.0f} s with evaluation and checkpoints, {record.pairs_per_second:,.0f} pairs/s in between"
    lines.append(f"{rate}; model in {run.output}")
    if run.source.built_in:
        lines.append("It was trained on the built-in bitext: a demonstration, not a usable model.")
    return "\n".join(lines)
