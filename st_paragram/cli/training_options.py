"""Options that all commands share which train a model."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.settings import add_setting_options, given, read_yaml
from st_paragram.learning.training.families import ENCODERS, Family
from st_paragram.learning.training.settings import config_names, config_path

if TYPE_CHECKING:
    from st_paragram.learning.training.run import TrainingRun


@dataclass(frozen=True)
class FileHelp:
    """What the help of a command says of the files that it reads and makes.

    Args:
        data: what can be trained on, and what is if nothing is named.
        output: the model directory that is made if none is named.
        option: for the data.
    """

    data: str
    output: str
    option: str = "--data"


def add_training_options(
    parser: argparse.ArgumentParser,
    default_config: str,
    files: FileHelp,
    tuning: bool = True,
    family: Family = ENCODERS,
) -> None:
    """Add the options of data, output and settings.

    Args:
        parser: Takes them.
        default_config: The configuration that serves if none is named.
        files: What is said of data and output.
        tuning: Add `--tune`.
        family: What kind of model is trained.
    """
    _add_file_options(parser, files)
    shown = f"Each option overrides the configuration. The defaults shown are those of `{default_config}`."
    group = parser.add_argument_group("settings", shown)
    other = family.built_in_config != default_config
    built_in = f"; {family.built_in_config} for the built-in bitext" if other else ""
    group.add_argument(
        "--config",
        metavar="NAME|FILE.yaml",
        help=f"the configuration: {', '.join(config_names(family.configs))}, or a YAML file of settings (default: "
        f"{default_config}{built_in})",
    )
    add_setting_options(group, family.settings, defaults=read_yaml(config_path(default_config, family.configs)))
    parser.set_defaults(default_config=default_config, tune=False, family=family)
    if tuning:
        text = "train a model for each point of the paper's grid of dropout and M, and keep the best"
        group.add_argument("--tune", action="store_true", help=text)


def _add_file_options(parser: argparse.ArgumentParser, files: FileHelp) -> None:
    from st_paragram.tools.preparation.settings import PrepareSettings

    group = parser.add_argument_group("data and output")
    add = group.add_argument
    add(
        files.option,
        dest="data",
        action="append",
        default=[],
        metavar="FILE",
        help=f"what to train on: {files.data}",
    )
    add_setting_options(group, PrepareSettings, only=("vocab_size", "drop_invalid"))
    add("--workers", type=int, default=1, metavar="N", help="processes that prepare texts (default: %(default)s)")
    add(
        "--dev",
        type=Path,
        metavar="FILE.tsv",
        help="graded pairs to score during the training, rows `grade TAB sentence TAB sentence` (default: built-in "
        "ones)",
    )
    add(
        "--dev-bitext",
        type=Path,
        metavar="FILE.tsv",
        help="held-out translations, rows `english TAB other`; the share of them that is found is shown during the "
        "training",
    )
    add("--force-test-set", action="store_true", help="allow --dev or --dev-bitext to be a known test set")
    add(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"the model directory to make (default: {files.output})",
    )
    add("--overwrite", action="store_true", help="replace a model directory that exists")
    add("--resume", action="store_true", help="continue from the last checkpoint")


def training_run(arguments: argparse.Namespace, language: str) -> TrainingRun:
    """The training run that the options describe."""
    from st_paragram.learning.training.run import TrainingRun

    family: Family = arguments.family
    return TrainingRun(
        language=language,
        output=arguments.output or Path(f"{_kind(arguments)}-{language}"),
        data=arguments.data,
        config=arguments.config,
        default_config=arguments.default_config,
        family=family,
        overrides=given(arguments, family.settings),
        vocab_size=getattr(arguments, "vocab_size", None),
        drop_invalid=getattr(arguments, "drop_invalid", False),
        workers=arguments.workers,
        development=arguments.dev,
        translations=arguments.dev_bitext,
        force_test_set=arguments.force_test_set,
        tune=arguments.tune,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
    )


def _kind(arguments: argparse.Namespace) -> str:
    """What begins the name of the model directory."""
    encoder: str = getattr(arguments, "encoder", "sp")
    default = "p-sp" if arguments.family is ENCODERS else "bgt"
    kind: str = getattr(arguments, "objective", default if encoder == "sp" else encoder)
    return kind
