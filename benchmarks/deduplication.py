"""What `st-paragram dedupe` finds, in what time and memory: `python benchmarks/deduplication.py --text F`.

F has one sentence on each line, plain or compressed. Distinct lines of it are written to a text, and after them as many
changed copies as asked for: the same, with other case and marks, with a word replaced, deleted, inserted, or two words
swapped. Each run is a process whose memory is watched. A table has, for each kind, the share of the planted lines that
are removed ("recall"), and that of those whose words are at least 80 % in common with their original's ("near").
"Natural" are lines removed for a line that they were not made from, which real text has, too; "wrong" are lines
removed although they are not duplicates by the definition.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.output import print_growing
from harness.quality.planted_duplicates import HEAD, measure, plant

from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="a sentence on each line")
    parser.add_argument("--lines", type=int, default=1_000_000, help="of the text that is made (%(default)s)")
    parser.add_argument("--methods", nargs="+", default=["exact", "exact+minhash"], help="joined by + (%(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1], help="processes (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path(), help="for temporary files, some GB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        text = plant(arguments.text, Path(folder) / "text", arguments.lines)
        runs = ((methods.split("+"), workers) for methods in arguments.methods for workers in arguments.workers)
        print_growing(HEAD, (row for run in runs for row in measure(text, Path(folder), *run)))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("deduplication", main))
