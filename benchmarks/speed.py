"""Speed side by side with what else one could take: `python benchmarks/speed.py`.

Prints Markdown tables; writes them (`speed.md`), every single round with the facts of the machine (`speed.json`) and a
picture of each table into the folder `--output`. What the tables show, and what they do not: docs/speed.md. Peers that
are not installed keep their row, with what to install: `pip install "st_paragram[peers,plots]"`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.options import Options
from harness.run import SECTIONS, run

from st_paragram.cli.main import run_reporting_errors
from st_paragram.errors import SettingsError

_QUICK: dict[str, Any] = {"vocab_size": 4_000, "dim": 128, "count": 6_000, "slow_count": 64, "megabatch_size": 8}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, metavar="DIR", help="a model directory; else a random model")
    parser.add_argument("--sentences", type=Path, metavar="FILE", help="one a line; else built-in text")
    parser.add_argument("--data", type=Path, metavar="STORE", help="a pair store; else one made of the sentences")
    parser.add_argument("--original", type=Path, metavar="DIR", help="a checkout of the authors' code")
    parser.add_argument("--only", metavar="SECTIONS", help=f"some of {','.join(SECTIONS)}")
    parser.add_argument(
        "--peers", metavar="NAMES", help="only rows with one of these, separated by commas, in the name"
    )
    parser.add_argument("--rounds", type=int, help="that count (default 5)")
    parser.add_argument("--vocab-size", type=int, help="pieces of a random model (default 50,000)")
    parser.add_argument("--dim", type=int, help="components (default 1,024)")
    parser.add_argument("--count", type=int, help="sentences to encode (default 120,000)")
    parser.add_argument("--slow-count", type=int, help="sentences for transformers and their like (default 1,000)")
    parser.add_argument("--megabatch-size", type=int, help="M (default 60)")
    parser.add_argument("--device", help="torch device of what can use one (default cpu)")
    parser.add_argument("--output", type=Path, default=Path("build/speed"), metavar="FOLDER")
    parser.add_argument("--resume", action="store_true", help="go on where a run with the same options stopped")
    parser.add_argument(
        "--quick", action="store_true", help="a smoke test of about two minutes; its figures say nothing"
    )
    parser.add_argument("--no-plots", action="store_true")
    arguments = parser.parse_args()

    sections = arguments.only.split(",") if arguments.only else list(SECTIONS)
    if unknown := [name for name in sections if name not in SECTIONS]:
        raise SettingsError(f"no section {unknown[0]!r}; --only takes {', '.join(SECTIONS)}")
    options = Options(arguments.output, arguments.model, arguments.sentences, arguments.data, arguments.original)
    if arguments.quick:
        options = replace(options, **_QUICK, rounds=2, anneal_interval=4, memory_mib=32, quick=True)
    names = ("rounds", "vocab_size", "dim", "count", "slow_count", "megabatch_size", "device")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    options = replace(options, **given, peers=tuple(arguments.peers.split(",")) if arguments.peers else ())
    run(options, sections, arguments.resume, not arguments.no_plots)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("speed", main))
