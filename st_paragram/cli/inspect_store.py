"""`st-paragram inspect`: look into a pair store."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DESCRIPTION = "Show what a pair store holds: counts, lengths, use of the vocabulary, pairs drawn at random."
EPILOG = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("store", type=Path, metavar="STORE.h5", help="a pair store")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="pairs to draw at random (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (%(default)s)")
    parser.add_argument("--limit", type=int, metavar="N", help="look at the first N pairs only: a random sample")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw lengths and frequencies of pieces")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there too")


def run(arguments: argparse.Namespace) -> int:
    """Print what the store holds; returns the exit status.

    Raises:
        ParagramError: If the store cannot be read, or matplotlib is missing.
    """
    from st_paragram.data.inspection.plot import plot
    from st_paragram.data.inspection.scan import inspect
    from st_paragram.data.inspection.text import render
    from st_paragram.data.pair_store import PairStore
    from st_paragram.files import write_json

    inspection = inspect(PairStore(arguments.store, limit=arguments.limit), arguments.pairs, arguments.seed)
    sys.stdout.write(render(inspection))
    if arguments.json:
        write_json(arguments.json, inspection.as_json())
    if arguments.plot:
        plot(inspection, arguments.plot)
    return 0
