"""How long a new process takes until its first vector, and whole commands: `python benchmarks/startup.py`.

Compares `Encoder`, `st_paragram.load`, plain sentence-transformers and model2vec with the same model, and times
`st-paragram score` of a pair and `st-paragram search`. Peers that are not installed keep their row, with the reason.
Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.speed.report import table_markdown
from harness.speed.startup import measure, processes

from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", nargs="?", default="p-sp-mini", help="(%(default)s)")
    parser.add_argument("--lines", type=int, default=1000, metavar="N", help="of the index (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="(%(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(table_markdown(measure(processes(given.model, Path(folder), given.lines), given.rounds)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("startup", main))
