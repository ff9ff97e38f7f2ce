"""Benchmarks of mining: `python benchmarks/mining.py PART ...`, of which each has its own `--help`.

planted    known pairs hidden among sentences without a translation: precision, recall and F1 by each margin
bucc       the same on files of the BUCC shared task, beside the figures of benchmarks/bucc.py
scaling    time by stage and memory against the number of sentences
indexes    what indexes that are not exact save and lose
peers      beside a baseline, and beside sentence-transformers' paraphrase mining

Every part prints Markdown, writes a record with `--json FILE` and pictures to `--plot DIR`. Mining is run in processes
of its own, whose memory is watched (Linux only).
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from harness.mining_options import PARTS, build_parser

from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Run one part."""
    arguments = build_parser(__doc__ or "").parse_args()
    part = importlib.import_module(PARTS[arguments.part])
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        found = part.run(arguments, Path(folder))
    if arguments.json:
        from harness.scripts import write_run

        write_run(found, arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mining", main))
