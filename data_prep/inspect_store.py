"""Describe a pair store, as `st-paragram inspect` does: `python data_prep/inspect_store.py en-es.h5 --plot es.png`."""

from __future__ import annotations

import argparse
import sys

from st_paragram.cli.inspect_store import add_arguments, run
from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Describe the store."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("inspect_store", main))
