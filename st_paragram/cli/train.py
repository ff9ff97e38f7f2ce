"""`st-paragram train`: train a model of one of the families."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING, Any

from st_paragram.core.families import family_named, training_kinds
from st_paragram.learning.training.processes import is_main_process

if TYPE_CHECKING:
    from st_paragram.learning.training.family import RunSettings, TrainingKind
    from st_paragram.learning.training.run import RunReport, TrainingPlan
    from st_paragram.learning.training.training_data import TrainingData

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


def run(arguments: argparse.Namespace) -> int:
    """Train; returns the exit status.

    Raises:
        ParagramError: The settings, the data or the output are refused.
    """
    return _train(_kind(arguments.kind), arguments)


def run_recipe(name: str, kind: str, description: str | None, default_config: str | None = None) -> int:
    """A kind of training as a script, which takes the same options; returns the exit status.

    Args:
        name: Of the script, for errors.
        kind: Of training, "bitext".
        description: The script's docstring, for its `--help`.
        default_config: The configuration that serves if none is named; None: as for the command.
    """
    from st_paragram.cli.main import run_reporting_errors

    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    _kind(kind).add_options(parser, default_config)
    arguments = parser.parse_args()
    return run_reporting_errors(name, lambda: _train(_kind(kind), arguments))


def _kind(name: str) -> TrainingKind:
    family, _ = training_kinds()[name]
    return family_named(family).kinds[name]


def _train(kind: TrainingKind, arguments: argparse.Namespace) -> int:
    """Plan and train; returns the exit status, errors as in `run`."""
    from st_paragram.learning.training.run import execute

    if not is_main_process():
        logging.getLogger().setLevel(logging.WARNING)  # the first process sends it to the rest
    plan = kind.run(arguments).plan()
    if arguments.plan:
        if is_main_process():
            print(plan.shown())
        return 0
    try:
        report = execute(plan, _write_start)
    except KeyboardInterrupt:
        _point_to_checkpoint(plan)
        raise
    if is_main_process():
        sys.stdout.write(f"{_text(report, rough=plan.run.development is None)}\n")
    return 0


def _point_to_checkpoint(plan: TrainingPlan) -> None:
    from st_paragram.learning.training.checkpoints import finished

    checkpoints = plan.run.checkpoints
    if is_main_process() and finished(checkpoints):
        print(f"checkpoint saved in {checkpoints}; continue with the same command and --resume", file=sys.stderr)


def _write_start(data: TrainingData, settings: RunSettings) -> None:
    pairs = f"{len(data.store):,} pairs{data.left_out}"
    print(f"training on {data.description}: {pairs}, {settings.extent}", flush=True)


def _text(report: RunReport, rough: bool) -> str:
    """The report as text; `rough`: the development pairs are the built-in ones."""
    name, best = report.development, report.best
    lines = [f"{point.tried}  {name} {100 * point.after.pearson:.1f}" for point in report.points]
    before, after = 100 * best.before.pearson, 100 * best.after.pearson
    hint = " (rough built-in pairs, to see that it learns; --dev takes your own)" if rough else ""
    lines.append(f"{name}, Pearson x 100: {before:.1f} before training, {after:.1f} after{hint}")
    for score in best.translations:
        lines.append(f"{score.data}, translations found {score.model}: {100 * score.accuracy:.1f} %")
    rate = f"{best.seconds:.0f} s with evaluation and checkpoints, {best.pairs_per_second:,.0f} pairs/s in between"
    lines.append(f"{rate}; model in {report.output}")
    if report.built_in:
        lines.append("It was trained on the built-in bitext: a demonstration, not a usable model.")
    return "\n".join(lines)
