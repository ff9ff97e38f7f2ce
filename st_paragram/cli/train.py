"""`st-paragram train`: train a model of one of the families."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from st_paragram.core.families import family_named, training_kinds

if TYPE_CHECKING:
    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.learning.family import TrainingKind
    from st_paragram.runs.run import TrainingRun

DESCRIPTION = (
    "Train a model. KIND is the kind of training (default: bitext). `st-paragram train KIND --help`"
    " shows the options of each kind."
)
EPILOG = ""
FIRST_WORD = "bitext"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each kind of training; only the family of the kind that is called is
    imported.
    """

    class KindParser(type(parser)):  # type: ignore[misc]
        """Gets the options of its kind when it is first used."""

        kind = ""

        def fill(self) -> None:
            if self.kind:
                kind, self.kind = _kind(self.kind), ""
                self.description, self.epilog = kind.description, kind.epilog
                kind.add_options(self)

        def format_help(self) -> str:
            self.fill()
            return str(super().format_help())

        def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
            self.fill()
            return super().parse_known_args(args, namespace)

    kinds = parser.add_subparsers(
        dest="kind", required=True, metavar="KIND", parser_class=KindParser
    )
    for name, (_, about) in training_kinds().items():
        kinds.add_parser(name, help=about, formatter_class=parser.formatter_class).kind = name


def _kind(name: str) -> TrainingKind:
    kind: TrainingKind = family_named(training_kinds()[name][0]).kinds[name]
    return kind


def run(arguments: argparse.Namespace) -> int:
    """Train, or print the plan; return the exit status."""
    run = _kind(arguments.kind).run(arguments)
    if arguments.plan:
        run.check()
        print(run.shown())
        return 0
    if getattr(arguments, "tune", False):
        from st_paragram.runs.tune import tune as train
    else:
        from st_paragram.runs.run import run_training as train
    print(_summary(train(run), run))
    return 0


def _summary(record: TrainingRecord, run: TrainingRun) -> str:
    """Summarize a run: translations found (with held-out pairs) or a correlation, or its failure;
    and the rate.
    """
    if record.discarded:
        lines = [
            f"the training was discarded: {record.discarded}; the model has its weights before"
            " training"
        ]
    elif record.translations:
        before, after = (100 * score.accuracy for score in record.translations)
        held_out, kind = (
            record.translations[0],
            ("paraphrases" if run.language == "en" else "translations"),
        )
        what = f"{held_out.pairs:,} " + (
            f"pairs of {held_out.data}" if run.translations else "held-out pairs"
        )
        lines = [f"{kind} found among {what}: {before:.1f} % before training, {after:.1f} % after"]
    else:
        before, after = (100 * score.correlation.pearson for score in record.scores)
        hint = (
            ""
            if run.development
            else " (rough built-in pairs, to show that it learns; use your own with --dev)"
        )
        lines = [
            f"{record.scores[0].data}, Pearson x 100: {before:.1f} before training, {after:.1f}"
            f" after{hint}"
        ]
    rate = f"{record.pairs_per_second:,.0f} pairs/s while training"
    lines.append(
        f"{record.seconds:.0f} s including evaluation and checkpoints, {rate}; model in"
        f" {run.output}"
    )
    if run.source.built_in:
        lines.append(
            "The model was trained on the built-in bitext: a demonstration, not a usable model."
        )
    return "\n".join(lines)
