"""`st-paragram score`: cosine similarities of pairs of sentences."""

from __future__ import annotations

import argparse
import sys


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "score",
        help="score pairs of sentences",
        description="Write `cosine TAB first TAB second` for each row `first TAB second` of a file (plain, gz, xz, "
        "bz2, zip with one member, or - for standard input), in order.",
    )
    parser.add_argument("file", metavar="PAIRS.tsv")
    parser.add_argument("--model", help="model directory, name or hub id (the only ./p-sp-* if not given)")
    parser.add_argument("--output", required=True, metavar="Y.tsv")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")


def run(arguments: argparse.Namespace) -> int:
    """Score the pairs and say what was done."""
    from st_paragram import model_directory
    from st_paragram.data.text import TextSource
    from st_paragram.encoding import score_file

    model = model_directory.load(arguments.model or model_directory.only_model_here())
    source = TextSource((arguments.file,), ("first", "second"))
    report = score_file(model, source, arguments.output, arguments.overwrite)
    print(f"{arguments.output}: {report.lines} pairs; {report.blank} with a blank side", file=sys.stderr)
    return 0
