"""Benchmarks of mining: `python benchmarks/mining.py PART ...`, of which each has its own `--help`.

scaling    time by stage and memory against the number of sentences
peers      next to a baseline, and next to sentence-transformers' paraphrase mining

Every part prints Markdown and writes its figures with `--json FILE`. Mining runs in separate processes, whose memory is
watched (Linux only).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.mining import peers, scaling
from harness.output import write_result

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.bitext_mining.margin import DEFAULT_K

PARTS = {"scaling": scaling, "peers": peers}


def main() -> int:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, module in PARTS.items():
        part = parts.add_parser(name, help=module.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        add = part.add_argument
        add("--model", required=True, help="directory or name of a model")
        add("--bitext", required=True, type=Path, help="source TAB target, plain or compressed")
        add("--k", type=int, default=DEFAULT_K, help="neighbors")
        add("--memory", default="4G", help="the most memory that mining may take")
        add("--folder", type=Path, default=Path(), help="for temporary files: some 5 KB a sentence")
        add("--json", type=Path, metavar="FILE", help="write the figures there")
        module.add_options(part)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        found = PARTS[arguments.part].run(arguments, Path(folder))
    if arguments.json:
        options = {name: str(value) for name, value in vars(arguments).items()}
        write_result(arguments.json, part=arguments.part, options=options, found=found)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mining", main))
