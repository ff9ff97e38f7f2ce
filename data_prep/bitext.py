"""From the web to a pair store in one command: `python data_prep/bitext.py --lang es` (or fr-es-de).

The same as `st-paragram bitext`: downloads what the papers trained on (corpora.yaml), cleans it, makes
data/en-es.h5 for `python recipes/train_bitext.py --lang es`. After an interruption it resumes where it stopped.
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
