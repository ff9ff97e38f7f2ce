"""Fetch the parallel text of the papers, any other of OPUS, or test sets: `python data_prep/get_corpora.py --lang es`.

The same as `st-paragram download`. What there is, under which licence, and whom to cite stands in corpora.yaml;
`--list` shows it. What is there already is not fetched again, what was broken off is resumed.
"""

from __future__ import annotations

import argparse
import sys

from st_paragram.cli.download import add_options, run
from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Fetch, or show what would be fetched."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("get_corpora", main))
