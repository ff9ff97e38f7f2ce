"""Command-line options shared by all kinds of training."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.cli.options import add_no_checks
from st_paragram.core.settings import add_setting_options, given, read_yaml

if TYPE_CHECKING:
    from st_paragram.learning.family import Family
    from st_paragram.runs.run import TrainingRun

#: Help for the training data; {} is the language.
PAIRS = (
    "a pair store (.h5), a two-column text (repeatable), or `built-in` (default: data/en-{}.h5, or"
    " the built-in bitext if it does not exist)"
)


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add `--lang`."""
    parser.add_argument(
        "--lang", required=True, metavar="LANG", help="language other than English, e.g. es"
    )


def add_training_options(
    parser: argparse.ArgumentParser,
    family: Family,
    data: str,
    output: str,
    option: str = "--data",
    default_config: str | None = None,
) -> Any:
    """Add the options for data, output and settings; return the group of settings, for further
    options.

    `data` is the help for the training data, `output` the default output, and `option` the name of
    the data option. `default_config` is the configuration that applies by default (None: the
    family's).
    """
    files = parser.add_argument_group("data and output")
    add = files.add_argument
    add(
        option,
        dest="data",
        action="append",
        default=[],
        metavar="FILE",
        help=f"training data: {data}",
    )
    columns = (
        "for tables (CSV, JSON lines, Parquet, or TSV with a header): columns of the two languages"
    )
    about = f"{columns}, once for all texts or once per text"
    add("--columns", action="append", default=[], nargs=2, metavar="NAME", help=about)
    about = (
        "vocabulary size for text data (default: 8,000 to 50,000, depending on the number of pairs)"
    )
    add("--vocab-size", type=int, metavar="N", help=about)
    about = (
        "drop and count rows that are not UTF-8 or have a wrong number of columns, instead of"
        " refusing the text"
    )
    add("--drop-invalid", action="store_true", help=about)
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes for text preparation (default: %(default)s)",
    )
    about = (
        "graded pairs to score during training, rows `grade TAB sentence TAB sentence` (default:"
        " built-in pairs)"
    )
    add("--dev", type=Path, metavar="FILE.tsv", help=about)
    about = "held-out translations, rows `english TAB other`; training reports the share found"
    add("--dev-bitext", type=Path, metavar="FILE.tsv", help=about)
    add(
        "--force-test-set",
        action="store_true",
        help="allow --dev or --dev-bitext to be a known test set",
    )
    add("--output", type=Path, metavar="DIR", help=f"output model directory (default: {output})")
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add("--resume", action="store_true", help="continue from the last checkpoint")
    add_no_checks(files)
    about = "print the inputs, outputs and settings, and stop"
    parser.add_argument("--plan", action="store_true", help=about)

    default_config = default_config or family.default_config
    shown = f"Each option overrides the configuration. Defaults shown are from `{default_config}`."
    settings = parser.add_argument_group("settings", shown)
    note = (
        f"; {family.built_in_config} for the built-in bitext"
        if family.built_in_config != default_config
        else ""
    )
    names = ", ".join(family.configs)
    about = f"configuration: {names}, or a YAML file of settings (default: {default_config}{note})"
    settings.add_argument("--config", metavar="NAME|FILE.yaml", help=about)
    add_setting_options(
        settings, family.settings, defaults=read_yaml(family.config_path(default_config))
    )
    parser.set_defaults(default_config=default_config)
    return settings


def training_run(
    arguments: argparse.Namespace,
    family: Family,
    language: str,
    output: Path,
    data: list[str] | None = None,
    more: Any = None,
) -> TrainingRun:
    """Return the training run that the options describe; `data` replaces `--data`, `output` is the
    default output.
    """
    from st_paragram.runs.run import TrainingRun

    same = ["columns", "config", "default_config", "vocab_size", "drop_invalid", "workers"]
    same += ["force_test_set", "resume", "overwrite"]
    return TrainingRun(
        language,
        arguments.output or output,
        arguments.data if data is None else data,
        family=family.name,
        more=more,
        overrides=given(arguments, family.settings),
        checks=not arguments.no_checks,
        development=arguments.dev,
        translations=arguments.dev_bitext,
        **{name: getattr(arguments, name) for name in same},
    )
