"""Speed and memory of preparing a pair store, next to a baseline: `python benchmarks/preparation.py --text F`.

F is a text of two tab-separated columns, plain or compressed. It is repeated, with a word changed in most repeats, to
the sizes asked for. Each size is prepared by `st-paragram prepare` with each number of workers, in a process of its
own; the first table has the pairs read per second and the peak of the memory of all its processes. The second
compares it with a plain rendering of the steps, row by row (`speed/preparation_baseline.py` in harness/), with the
same vocabulary, after both were found to have stored the same pairs: medians of several rounds, taken in turn.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.output import print_growing
from harness.speed.preparation import COMPARED_HEAD, HEAD, Preparation, compare, row

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.tables import markdown_table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="English TAB the other language")
    parser.add_argument("--lang", default="xx", help="the other language (%(default)s)")
    parser.add_argument("--vocab", type=Path, help="a sentencepiece model, instead of training one")
    parser.add_argument("--pairs", type=int, nargs="+", default=[500_000, 5_000_000], help="(%(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="processes (%(default)s)")
    parser.add_argument("--cleaning", help="for st-paragram prepare, in the first table")
    parser.add_argument("--baseline-pairs", type=int, default=200_000, help="of the second table; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=3, help="of the second table (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path(), help="for temporary files, some GB")
    arguments = parser.parse_args()
    more = ["--cleaning", arguments.cleaning] if arguments.cleaning else []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        what = Preparation(arguments.text, arguments.lang, Path(folder), arguments.vocab)
        texts = ((pairs, what.repeated(pairs)) for pairs in arguments.pairs)
        runs = (row(pairs, count, what.run(text, count, more)) for pairs, text in texts for count in arguments.workers)
        print_growing(HEAD, runs)
        if arguments.baseline_pairs:
            found = compare(what, arguments.baseline_pairs, arguments.workers, arguments.rounds)
            print(
                f"\n{found.pairs:,} pairs, {found.stored:,} stored, the same by all. Medians of {arguments.rounds}.\n"
            )
            print(markdown_table(COMPARED_HEAD, found.rows()))
            steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found.steps.items())
            print(f"\nbaseline, seconds by step: {steps}")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("preparation", main))
