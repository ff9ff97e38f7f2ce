"""`st-paragram align`: sentence alignment of documents."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from st_paragram.cli.options import (
    add_model_option,
    add_pair_option,
    chosen_texts,
    model_name,
    pair_from,
    say,
)
from st_paragram.core.formatting import counted
from st_paragram.core.settings import add_setting_options, given
from st_paragram.tools.alignment.settings import AlignmentSettings

DESCRIPTION = (
    "Align the sentences of a document with those of its translation. Both files have one sentence"
    " per line, plain or compressed. A few neighboring sentences of each document form a block;"
    " sentences without a translation are skipped. The output has rows `score TAB source TAB"
    " target` in document order. The score is the cosine of both sides. If a run over a list of"
    " documents is interrupted, the same command resumes it."
)
EPILOG = """\
A sentence in which the model knows no token is skipped, like a sentence without a translation. The
command prints the number of such sentences.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    documents = parser.add_argument_group("documents")
    add = documents.add_argument
    add("unnamed", nargs="*", help=argparse.SUPPRESS)
    add("--source", metavar="A.txt", help="source document")
    add("--target", metavar="B.txt", help="target document, a translation of the source")
    about = (
        "list of document pairs instead: rows `source file TAB target file`, paths relative to the"
        " list"
    )
    add("--documents", metavar="LIST.tsv", help=about)
    add_model_option(documents)
    add_pair_option(documents)
    about = "split lines into sentences, in the languages of --pair (extra split)"
    add("--split", action="store_true", help=about)
    add("--output", metavar="OUT.tsv", help="output file, tab-separated or .tmx (required)")
    about = "write numbers of sentences, from 0, joined by commas, instead of sentences"
    add("--indices", action="store_true", help=about)
    add("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(parser.add_argument_group("alignment"), AlignmentSettings)


def run(arguments: argparse.Namespace) -> int:
    """Align the documents and print the counts."""
    from st_paragram.core.text.streams import regular_file
    from st_paragram.tools.alignment.documents import align_documents, read_list

    options = {
        "--source": arguments.source,
        "--target": arguments.target,
        "--documents": arguments.documents,
    }
    chosen_texts(arguments, options, ["--source", "--target"], ["--documents"])
    settings = AlignmentSettings(**given(arguments, AlignmentSettings))
    with ExitStack() as stack:
        if arguments.documents:
            documents = read_list(arguments.documents)
        else:
            source = regular_file(arguments.source, stack)
            target = regular_file(arguments.target, stack)
            documents = [(source, target, "")]
        report = align_documents(
            documents,
            arguments.output,
            model_name(arguments),
            settings=settings,
            overwrite=arguments.overwrite,
            languages=pair_from(arguments),
            split=arguments.split,
            indices=arguments.indices,
        )
    what = f"{counted(report.pairs, 'pair')} from {counted(report.documents, 'pair')} of documents"
    unknown = f"; {report.unknown:,} without a known token (skipped)" if report.unknown else ""
    say(
        f"{arguments.output}: {what} with {report.source:,} and {report.target:,}"
        f" sentences{unknown}"
    )
    return 0
