"""Memory of training against the number of pairs: `python benchmarks/memory.py --data data/en-es.h5`.

Repeats the rows of a store to the sizes asked for, trains each for the same number of steps with
`recipes/train_bitext.py` in a process of its own, and prints the peak of its anonymous memory (RssAnon: the page cache
of the memory-mapped store is left out) and of its resident memory. Linux only.
"""

from __future__ import annotations

import argparse
import sys

from harness.growing_table import print_growing
from harness.training_memory import HEAD, measure

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.data.pair_store import PairStore


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a pair store")
    parser.add_argument("--pairs", type=int, nargs="+", default=[50_000, 300_000, 3_000_000], help="(%(default)s)")
    parser.add_argument("--steps", type=int, default=380, help="of each training run (%(default)s)")
    parser.add_argument("--dim", type=int, default=300, help="components of an embedding (%(default)s)")
    parser.add_argument("--megabatch-size", type=int, default=60, help="M (%(default)s)")
    arguments = parser.parse_args()
    store = PairStore(arguments.data)
    runs = measure(store, arguments.pairs, arguments.steps, arguments.dim, arguments.megabatch_size)
    print_growing(HEAD, (run.row() for run in runs))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("memory", main))
