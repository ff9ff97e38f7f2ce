"""Adding vectors to stores and searching them: `python benchmarks/vector_stores.py`.

Embeds sentences of the built-in grammar with p-sp-mini, adds them to each store of docs/integrations.md, and looks for
the nearest sentence to some of their translations, one at a time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.growing_table import print_growing
from harness.vector_stores import STORES, can_run, measure

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.data.sample.grammar import sample_pairs

HEAD = ["store", "seconds to add", "ms a query: median (least)", "nearest found"]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="p-sp-mini", help="(%(default)s)")
    parser.add_argument("--vectors", type=int, default=100_000, metavar="N", help="(%(default)s)")
    parser.add_argument("--queries", type=int, default=100, metavar="N", help="(%(default)s)")
    given = parser.parse_args()

    from st_paragram.learning.models.directory import load

    pairs = list(sample_pairs("es", given.vectors))
    model = load(given.model, device="cpu")
    vectors = model.encode([text for _, text in pairs], normalize_embeddings=True)
    queries = model.encode([text for text, _ in pairs[: given.queries]], normalize_embeddings=True)
    with tempfile.TemporaryDirectory() as folder:
        print_growing(HEAD, (measure(name, Path(folder), vectors, queries) for name in STORES if can_run(name)))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("vector_stores", main))
