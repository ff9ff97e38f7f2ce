"""`st-paragram align`: sentence alignment of documents."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.options.common import (
    add_model_option,
    check_input,
    model_name,
    say,
)

if TYPE_CHECKING:
    from st_paragram.tools.alignment.document_list import DocumentPair

DESCRIPTION = (
    "Align the sentences of a document and of its translation. Both have one sentence per line, plain or "
    "compressed. Each sentence is aligned with one sentence or two neighboring sentences of the other "
    "document, or is skipped. The output has rows `score TAB source TAB target` in the order of the "
    "documents. If a run over a list of documents is interrupted, the same command resumes it."
)
EPILOG = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    documents = parser.add_argument_group("documents")
    add = documents.add_argument
    add("--source", metavar="A.txt", help="a document")
    add("--target", metavar="B.txt", help="its translation")
    add(
        "--documents",
        metavar="LIST.tsv",
        help="list of document pairs instead: rows `source file TAB target file`, with paths relative to its folder",
    )
    add_model_option(documents)
    add("--output", required=True, metavar="OUT.tsv", help="output file")
    add("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(parser.add_argument_group("alignment"), AlignmentSettings)
    add = parser.add_argument_group("work").add_argument
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="worker processes (default: %(default)s)",
    )
    add(
        "--work",
        type=Path,
        metavar="DIR",
        help="folder for intermediate results; later runs redo only what has changed",
    )


def run(arguments: argparse.Namespace) -> int:
    """Align and say what was done.

    Raises:
        ParagramError: Documents, settings, model or output are refused.
    """
    from st_paragram.tools.alignment.documents import mine_documents
    from st_paragram.tools.stages.executors import LocalExecutor
    from st_paragram.tools.stages.work import Work

    documents = _documents(arguments)
    settings = AlignmentSettings(**given(arguments, AlignmentSettings))
    work = Work(arguments.work, arguments.work is not None, executor=LocalExecutor(arguments.workers))
    model = model_name(arguments)
    report = mine_documents(documents, arguments.output, model, settings, arguments.overwrite, work)
    what = f"{counted(report.pairs, 'pair')} from {counted(report.documents, 'pair')} of documents"
    say(f"{arguments.output}: {what} with {report.source:,} and {report.target:,} sentences")
    return 0


def _documents(arguments: argparse.Namespace) -> str | Iterable[DocumentPair]:
    from st_paragram.tools.alignment.document_list import DocumentPair

    named = (arguments.source is not None, arguments.target is not None, arguments.documents is not None)
    if named == (False, False, True):
        check_input(arguments.documents)
        return str(arguments.documents)
    if named == (True, True, False):
        check_input(arguments.source)
        check_input(arguments.target)
        return [DocumentPair(arguments.source, arguments.target)]
    raise SettingsError("give --source and --target, or --documents with a list of both")
