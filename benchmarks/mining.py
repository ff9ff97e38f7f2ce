"""Benchmarks of mining: `python benchmarks/mining.py PART ...`, of which each has its own `--help`.

planted    known pairs hidden among sentences without a translation: precision, recall and F1 by each margin
scaling    time by stage and memory against the number of sentences
peers      beside a baseline, and beside sentence-transformers' paraphrase mining

Every part prints Markdown and writes its figures with `--json FILE`. Mining runs in separate processes, whose memory is
watched (Linux only).
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from harness.mining.options import PARTS, build_parser
from harness.output import write_result

from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Run one part."""
    arguments = build_parser(__doc__ or "").parse_args()
    part = importlib.import_module(PARTS[arguments.part])
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        found = part.run(arguments, Path(folder))
    if arguments.json:
        options = {name: str(value) for name, value in vars(arguments).items()}
        write_result(arguments.json, part=arguments.part, options=options, found=found)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mining", main))
