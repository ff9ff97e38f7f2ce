"""`st-paragram inspect`: show what a pair store holds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DESCRIPTION = (
    "Show what is in a pair store: how many pairs it has, how long the sentences are, how much of the vocabulary they "
    "use, which languages and labels the rows have, and some pairs drawn at random."
)
EPILOG = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("store", type=Path, metavar="STORE.h5", help="a pair store")
    add("--pairs", type=int, default=10, metavar="N", help="number of random pairs to show (default: %(default)s)")
    add("--seed", type=int, default=0, help="random seed for these pairs (default: %(default)s)")
    add(
        "--limit",
        type=int,
        metavar="N",
        help="inspect only the first N pairs (a random sample, because stores are shuffled)",
    )
    add(
        "--plot",
        type=Path,
        metavar="FILE.png",
        help="plot of sentence lengths and piece frequencies, written to this file",
    )
    add("--json", type=Path, metavar="FILE", help="also write the numbers to this file")


def run(arguments: argparse.Namespace) -> int:
    """Print what the store holds; returns the exit status.

    Raises:
        ParagramError: the store cannot be read, or matplotlib is missing.
    """
    from st_paragram.core.files import output_files, write_json
    from st_paragram.core.pair_store import PairStore
    from st_paragram.tools.inspection.plot import plot
    from st_paragram.tools.inspection.scan import inspect
    from st_paragram.tools.inspection.text import render

    inspection = inspect(PairStore(arguments.store, limit=arguments.limit), arguments.pairs, arguments.seed)
    sys.stdout.write(render(inspection))
    with output_files(arguments.json, arguments.plot, overwrite=True):
        if arguments.json:
            write_json(arguments.json, inspection.as_json())
        if arguments.plot:
            plot(inspection, arguments.plot)
    return 0
