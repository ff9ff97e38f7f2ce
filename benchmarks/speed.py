"""Speed side by side with what else one could take: `python benchmarks/speed.py`.

Prints Markdown tables; writes them (`speed.md`), every single round with a description of the machine (`speed.json`)
and a picture of each table into the folder `--output`. What the tables show, and what they do not: docs/speed.md. Peers
that are not installed keep their row, with what to install: `pip install "st_paragram[peers,plots]"`.
"""

from __future__ import annotations

import argparse
import sys

from harness.speed.options import add_options, options_of
from harness.speed.run import SECTIONS, run

from st_paragram.cli.main import run_reporting_errors
from st_paragram.errors import SettingsError


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--only", metavar="SECTIONS", help=f"some of {','.join(SECTIONS)}")
    parser.add_argument(
        "--resume", action="store_true", help="take what an interrupted run of the same options has made"
    )
    parser.add_argument("--no-plots", action="store_true", help="draw no pictures")
    arguments = parser.parse_args()
    sections = arguments.only.split(",") if arguments.only else list(SECTIONS)
    if unknown := [name for name in sections if name not in SECTIONS]:
        raise SettingsError(f"no section {unknown[0]!r}; --only takes {', '.join(SECTIONS)}")
    run(options_of(arguments), sections, arguments.resume, not arguments.no_plots)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("speed", main))
