"""Error rate of finding translations: `python benchmarks/tatoeba.py MODEL... --data FILE.tsv...`.

Rows of a file: two sentences that translate each other. Nearest neighbour by cosine, both ways and their mean, x 100.
"""

from __future__ import annotations

import argparse
import sys

from st_paragram import model_directory
from st_paragram.cli.main import run_reporting_errors
from st_paragram.data.text import TextSource, read_pairs
from st_paragram.evaluation.tatoeba import retrieval_error


def main() -> int:
    """Score every model on every file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE.tsv")
    arguments = parser.parse_args()

    print("| model | data | first to second | second to first | mean error x 100 |")
    print("| --- | --- | --- | --- | --- |")
    for path in arguments.data:
        pairs = list(read_pairs(TextSource((path,), ("first", "second"))))
        first, second = map(list, zip(*pairs, strict=True))
        for name in arguments.models:
            error = retrieval_error(model_directory.load(name), first, second)
            figures = " | ".join(f"{100 * value:.1f}" for value in (error.forward, error.backward, error.mean))
            print(f"| {name} | {path} ({len(pairs)}) | {figures} |")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("tatoeba", main))
