"""What indexes that are not exact save and lose."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.growing_table import print_growing, say
from harness.mining_indexes import HEAD, IndexPoint, compare_indexes, default_factories, embed_text, index_rows
from harness.mining_results import IndexesRun
from harness.mining_texts import write_distinct


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    add = parser.add_argument
    add("--sentences", type=int, default=100_000, help="to search")
    add("--queries", type=int, default=2000, help="to search for")
    add("--factories", nargs="+", metavar="FACTORY", help="faiss factory strings, instead of those for the size")


def run(arguments: argparse.Namespace, folder: Path) -> IndexesRun:
    """Search exactly and by every index, print as they come, and return what was measured."""
    from st_paragram.tools.evaluation.models import load_model

    texts = write_distinct(arguments.bitext, folder, arguments.sentences)
    model = load_model(arguments.model)
    queries, corpus = (embed_text(model, text, folder / text.suffix[1:]) for text in texts)
    factories = arguments.factories or default_factories(len(corpus), corpus.dim)
    points: list[IndexPoint] = []

    def measured(point: IndexPoint) -> list[str]:
        points.append(point)
        return index_rows(points)[-1]

    say(f"## {arguments.queries:,} queries in {len(corpus):,} sentences, the {arguments.k} nearest, all cores\n")
    compared = compare_indexes(corpus, queries, factories, folder, arguments.k, arguments.queries, arguments.rounds)
    print_growing(HEAD, map(measured, compared))
    if arguments.plot:
        from harness.mining_plots import plot_indexes

        plot_indexes(points, arguments.plot / "mining-indexes.png")
    return IndexesRun({arguments.model: points}, arguments.sentences, arguments.queries, arguments.k)
