"""`st-paragram align`: sentence alignment of documents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from st_paragram.alignment.document_list import DocumentPair


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "align",
        help="align the sentences of documents that say the same in the same order",
        description="Align two documents, a sentence a line, plain or compressed: one sentence with one, or one with "
        "two neighbours; others are skipped. Writes `score TAB source TAB target` in the order of the documents. With "
        "a list of documents, run again after an interruption, it goes on where it stopped.",
    )
    add = parser.add_argument_group("documents").add_argument
    add("--source", metavar="A.txt", help="a document")
    add("--target", metavar="B.txt", help="its translation")
    add("--documents", metavar="LIST.tsv", help="in place of both: rows `source file TAB target file`, from its folder")
    add("--model", help="model directory, name or hub id (the only ./p-sp-* if not given)")
    add("--output", required=True, metavar="OUT.tsv")
    add("--overwrite", action="store_true", help="replace an existing output")
    add = parser.add_argument_group("alignment").add_argument
    add("--margin", choices=("ratio", "distance", "absolute"), default="ratio", help="the score (%(default)s)")
    add("--neighbours", type=int, default=4, metavar="K", help="sentences that make its background (%(default)s)")
    add(
        "--skip-below",
        type=float,
        metavar="SCORE",
        help="skip sentences that score less together (ratio 1, distance 0, absolute 0.3)",
    )
    add("--all", action="store_true", help="write skipped sentences too, with an empty other side and score 0")
    add = parser.add_argument_group("work").add_argument
    add("--workers", type=int, default=1, help="processes that share the pairs of documents (%(default)s)")
    add("--work", type=Path, metavar="DIR", help="keep results here: later runs redo only what changed")


def run(arguments: argparse.Namespace) -> int:
    """Align and say what was done."""
    from st_paragram.alignment.alignment import AlignmentSettings
    from st_paragram.alignment.documents import mine_documents
    from st_paragram.bitext_mining.margin import Margin
    from st_paragram.bitext_mining.miner import Work
    from st_paragram.models.find import only_model_here
    from st_paragram.stages.executors import LocalExecutor

    report = mine_documents(
        _documents(arguments),
        arguments.output,
        arguments.model or only_model_here(),
        AlignmentSettings(Margin(arguments.margin), arguments.neighbours, arguments.skip_below, arguments.all),
        arguments.overwrite,
        Work(
            arguments.work,
            arguments.work is not None,
            executor=LocalExecutor(arguments.workers),
            workers=arguments.workers,
        ),
    )
    what = f"{report.pairs:,} pairs from {report.documents:,} pairs of documents"
    print(f"{arguments.output}: {what} with {report.source:,} and {report.target:,} sentences", file=sys.stderr)
    return 0


def _documents(arguments: argparse.Namespace) -> str | Iterable[DocumentPair]:
    from st_paragram.alignment.document_list import DocumentPair
    from st_paragram.errors import SettingsError

    given = (arguments.source is not None, arguments.target is not None, arguments.documents is not None)
    if given == (False, False, True):
        return str(arguments.documents)
    if given == (True, True, False):
        return [DocumentPair(arguments.source, arguments.target)]
    raise SettingsError("give --source and --target, or --documents with a list of both")
