"""Paraphrases out of bitext: `python data_prep/pivot.py --text en-de:de.tsv.xz --text en-es:es.zip --output en-en.tsv`.

The same as `st-paragram pivot`: English sentences that have the same translation become pairs. Text is read as by
`st-paragram prepare`, and its prefix must name the languages of its columns. Filter the result like any other
paraphrases (data_prep/paranmt.py).
"""

from __future__ import annotations

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.pivot import add_options, run


def main() -> int:
    """Make the pairs and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("pivot", main))
