"""`st-paragram towers`: towers of questions and answers, and a classifier of inference, over a finished encoder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError
from st_paragram.families.muse.settings import TowersSettings

DESCRIPTION = (
    "Train towers for questions and answers, and a classifier of inference, on the embeddings of a finished model, "
    "which stays as it is. Texts are embedded once, so training takes minutes on a CPU."
)
EPILOG = """\
  st-paragram towers use-psp --qa qa --output use-psp-qa
  st-paragram towers p-sp-base --qa qa --nli nli --output p-sp-base-qa
  st-paragram evaluate use-psp-qa --data eval --benchmarks answer-retrieval nli

The folders have files LANG.tsv (they may end in .gz or .xz, too). Their rows are
`question TAB answer` for --qa, `utterance TAB response` for --responses and `label TAB premise TAB hypothesis` for
--nli; the contexts of answers are not read. In the result, `encode` is that of MODEL, scaled to length 1;
`encode_query` and `encode_document` embed questions and answers, and `classify` labels pairs. A part of the rows is
held out; the epoch that is best on them is kept.
"""
_TASKS = (
    ("--qa", "qa", "question TAB answer"),
    ("--responses", "response", "utterance TAB response"),
    ("--nli", "nli", "label TAB premise TAB hypothesis"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="model directory, name or hub id of the encoder")
    for option, task, rows in _TASKS:
        about = f"folder of files LANG.tsv with rows `{rows}`"
        parser.add_argument(option, dest=f"task_{task}", type=Path, metavar="DIR", help=about)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="output model directory")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing model directory")
    add_setting_options(parser, TowersSettings)


def run(arguments: argparse.Namespace) -> int:
    """Train and save; returns the exit status."""
    from st_paragram.core.encoding.directory import check_free
    from st_paragram.core.encoding.find import find
    from st_paragram.families.muse.tasks import task_files

    settings = TowersSettings(**given(arguments, TowersSettings))
    folders = {task: folder for _, task, _ in _TASKS if (folder := getattr(arguments, f"task_{task}"))}
    if not folders:
        raise SettingsError("nothing to train on; give --qa, --responses or --nli")
    check_free(arguments.output, arguments.overwrite)
    found = find(arguments.model)
    for task, folder in folders.items():
        task_files(folder, task)
    from st_paragram.families.muse.towers_training import make_towers

    curves = make_towers(found, folders, arguments.output, settings, str(arguments.model), arguments.overwrite)
    for curve in curves:
        shown = " ".join(f"{100 * value:.1f}" for value in curve.values)
        sys.stdout.write(f"{curve.measure} ({curve.rows:,} rows), %: {shown}; epoch {curve.best} is kept\n")
    sys.stdout.write(f"{arguments.output}\n")
    return 0
