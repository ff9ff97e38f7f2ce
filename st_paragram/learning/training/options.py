"""Command-line options that all kinds of training share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.settings import add_setting_options, given, read_yaml
from st_paragram.tools.options.common import add_no_checks

if TYPE_CHECKING:
    from st_paragram.learning.training.family import Family
    from st_paragram.learning.training.run import TrainingRun

#: What can be trained on, for the help of a kind of training; {} is the language.
PAIRS = (
    "a pair store (.h5), a text of two columns (repeatable), or `built-in` (default: data/en-{}.h5, or the built-in "
    "bitext if there is no such file)"
)


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add `--lang`."""
    parser.add_argument("--lang", required=True, metavar="LANG", help="the language other than English, e.g. es")


def add_training_options(
    parser: argparse.ArgumentParser,
    family: Family,
    data: str,
    output: str,
    option: str = "--data",
    default_config: str | None = None,
) -> Any:  # noqa: ANN401 - a group of argparse
    """Add the options of data, output and settings; returns the group of settings, for further options.

    `data` and `output` say what can be trained on and what is made if nothing is named; `option` is that of the data,
    and `default_config` the configuration that serves if none is named (None: the family's).
    """
    files = parser.add_argument_group("data and output")
    add = files.add_argument
    add(option, dest="data", action="append", default=[], metavar="FILE", help=f"training data: {data}")
    columns = "for tables (CSV, JSON lines, Parquet, or TSV with a header): columns of the two languages"
    about = f"{columns}, once for all texts or once per text"
    add("--columns", action="append", default=[], nargs=2, metavar="NAME", help=about)
    about = "vocabulary size where text is prepared (default: 8,000 to 50,000, by the number of pairs)"
    add("--vocab-size", type=int, metavar="N", help=about)
    about = "drop and count rows that are not UTF-8 or have a wrong number of columns, instead of refusing the text"
    add("--drop-invalid", action="store_true", help=about)
    add("--workers", type=int, default=1, metavar="N", help="processes for text preparation (default: %(default)s)")
    about = "graded pairs to score during training, rows `grade TAB sentence TAB sentence` (default: built-in pairs)"
    add("--dev", type=Path, metavar="FILE.tsv", help=about)
    about = "held-out translations, rows `english TAB other`; training shows the share found"
    add("--dev-bitext", type=Path, metavar="FILE.tsv", help=about)
    add("--force-test-set", action="store_true", help="allow --dev or --dev-bitext to be a known test set")
    add("--output", type=Path, metavar="DIR", help=f"output model directory (default: {output})")
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add("--resume", action="store_true", help="continue from the last checkpoint")
    add_no_checks(files)
    about = "print what would be read and made, with which settings, and stop"
    parser.add_argument("--plan", action="store_true", help=about)

    default_config = default_config or family.default_config
    shown = f"Each option overrides the configuration. Defaults shown are from `{default_config}`."
    settings = parser.add_argument_group("settings", shown)
    note = f"; {family.built_in_config} for the built-in bitext" if family.built_in_config != default_config else ""
    names = ", ".join(family.configs)
    about = f"configuration: {names}, or a YAML file of settings (default: {default_config}{note})"
    settings.add_argument("--config", metavar="NAME|FILE.yaml", help=about)
    add_setting_options(settings, family.settings, defaults=read_yaml(family.config_path(default_config)))
    parser.set_defaults(default_config=default_config)
    return settings


def training_run(
    arguments: argparse.Namespace,
    family: Family,
    language: str,
    output: Path,
    data: list[str] | None = None,
    more: Any = None,  # noqa: ANN401
) -> TrainingRun:
    """The training run that the options describe; `data` in place of what was given, `output` if none is named."""
    from st_paragram.learning.training.run import TrainingRun

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
