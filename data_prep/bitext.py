"""From the web to a pair store in one command: `python data_prep/bitext.py --lang es` (or fr-es-de).

The same as `st-paragram bitext`: it downloads the corpora that the papers trained on (corpora.yaml), cleans them and
makes data/en-es.h5 for `python recipes/train_bitext.py --lang es`. An interrupted run is resumed by the same command.
"""

from __future__ import annotations

import argparse
import sys

from st_paragram.cli.bitext import add_options, run
from st_paragram.cli.main import run_reporting_errors


def main() -> int:
    """Download, clean, prepare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("bitext", main))
