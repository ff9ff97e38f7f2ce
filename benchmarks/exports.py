"""Exports beside the native reader: `python benchmarks/exports.py MODEL`.

Writes every export of a model into a temporary folder, and encodes the built-in sentences with each reader, in turn,
round by round: rate, ratio to the native reader, size on disk, and how near the vectors are.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.exports import HEAD, measure
from harness.inputs import built_in_sentences, read_sentences

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.tables import markdown_table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", nargs="?", default="p-sp-mini", help="(%(default)s)")
    parser.add_argument("--text", type=Path, help="sentences, one a line (built-in ones)")
    parser.add_argument("--count", type=int, default=20_000, metavar="N", help="sentences (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="(%(default)s)")
    given = parser.parse_args()
    sentences = read_sentences(given.text, given.count) if given.text else list(built_in_sentences(given.count))
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(given.model, sentences, Path(folder), given.rounds, given.threads)
    print(markdown_table(HEAD, rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("exports", main))
