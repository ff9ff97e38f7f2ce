"""`st-paragram towers`: add towers for questions and answers, and an inference classifier, to a
finished model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from st_paragram.cli.options import MODEL, add_task_options, check_tasks, task_folders
from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError
from st_paragram.families.muse.settings import TowersSettings

DESCRIPTION = (
    "Train towers for questions and answers, and an inference classifier, on the embeddings of a"
    " finished model, which is not changed. Texts are embedded only once, so training takes minutes"
    " on a CPU."
)
EPILOG = """\
  st-paragram towers use-psp --qa qa --output use-psp-qa
  st-paragram towers p-sp-base --qa qa --nli nli --output p-sp-base-qa
  st-paragram evaluate use-psp-qa --data eval --benchmarks answer-retrieval nli

The folders have files LANG.tsv (also .gz or .xz). The contexts of answers are not read. In the
new model, `encode` gives MODEL's embeddings scaled to length 1, `encode_query` and
`encode_document` embed questions and answers, and `classify` labels pairs. Some rows are held out,
and the epoch that scores best on them is kept.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    add_task_options(parser)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="output model directory"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace an existing model directory"
    )
    add_setting_options(parser, TowersSettings)


def run(arguments: argparse.Namespace) -> int:
    """Train and save; return the exit status."""
    values = given(arguments, TowersSettings)
    settings = TowersSettings(**values)
    folders = task_folders(arguments)
    if not folders:
        raise SettingsError("nothing to train on; give --qa, --responses or --nli")
    check_tasks(values, folders)
    from st_paragram.families.muse.towers_training import make_towers

    curves = make_towers(
        arguments.model,
        folders,
        arguments.output,
        settings,
        arguments.model,
        arguments.overwrite,
    )
    for curve in curves:
        print(f"{curve.measure} ({curve.rows:,} rows), %: {curve}; epoch {curve.best} kept")
    print(arguments.output)
    return 0
