"""`st-paragram index`: make a text searchable."""

from __future__ import annotations

import argparse
from pathlib import Path

_EPILOG = """\
  st-paragram index lines.txt.gz --model p-sp-es --output lines.index
  st-paragram search lines.index "where is the station"

The folder holds the distinct sentences, their vectors and, unless all of them are compared with each query (Flat), an
index of faiss. It asks for the same model when it is searched. faiss reads its files without much doubt: search
folders of people you trust.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "index",
        help="make the sentences of a file searchable",
        description="Embed the distinct sentences of FILE (plain, gz, xz, bz2, or - for standard input), a sentence a "
        "line, and keep them in a folder for st-paragram search. Lines of fewer than two letters or digits are left "
        "out.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", metavar="FILE")
    add("--model", help="model directory, name or hub id (the only ./p-sp-* if not given)")
    add("--output", type=Path, required=True, metavar="FOLDER")
    add("--index", default="auto", help="auto, Flat (exact), or of faiss: IVF1024,SQfp16, HNSW32, ... (%(default)s)")
    add("--recall", type=float, default=0.9, help="least share of the nearest 10 that is found (%(default)s)")
    add("--precision", choices=("float16", "int8"), default="float16", help="of stored vectors (%(default)s)")
    add("--most-repeats", type=int, metavar="N", help="leave out sentences that occur more often")
    add("--memory", default="4G", metavar="SIZE", help="for vectors and index at a time (%(default)s)")
    add("--seed", type=int, default=0, help="of samples (%(default)s)")
    add("--overwrite", action="store_true", help="replace an existing index")


def run(arguments: argparse.Namespace) -> int:
    """Build the index and say what it is."""
    from st_paragram.bitext_mining.settings import FLAT, MiningSettings, parse_memory
    from st_paragram.models.find import only_model_here
    from st_paragram.search.search_index import SearchIndex
    from st_paragram.search.vectors import Precision

    settings = MiningSettings(
        index=arguments.index,
        recall=arguments.recall,
        precision=Precision(arguments.precision),
        memory=parse_memory(arguments.memory),
        most_repeats=arguments.most_repeats,
        seed=arguments.seed,
    )
    model = arguments.model or only_model_here()
    built = SearchIndex.build(arguments.file, arguments.output, model, settings, arguments.overwrite)
    metadata, counts = built.metadata, built.sentences.counts
    print(
        f"{arguments.output}: {counts.sentences:,} sentences of {counts.lines:,} lines ({counts.repeated:,} repeated, "
        f"{counts.blank + counts.near_empty:,} blank or nearly so, {counts.boilerplate:,} too often)"
    )
    exact = (
        "exact search"
        if metadata.factory == FLAT
        else f"finds {100 * metadata.recall:.1f} % of the nearest {metadata.neighbours}"
    )
    stored = f"{metadata.precision} vectors of {metadata.dimension} components by {metadata.model}"
    print(f"{metadata.factory}: {exact}; {stored}")
    if metadata.recall < settings.recall:
        print(f"that is less than the {100 * settings.recall:.1f} % asked for; choose another --index, or Flat")
    return 0
