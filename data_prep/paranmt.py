"""Paraphrases with scores to a pair store: `python data_prep/paranmt.py --text para-nmt-50m.txt --sim-low 0.4`.

The same as `st-paragram paranmt`: it filters by language labels, paraphrase scores, word-trigram overlap and length,
drops repeated pairs, and makes the pair store data/en-en.h5 for `python recipes/train_paraphrase.py`.
"""

from __future__ import annotations

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.paranmt import add_options, run


def main() -> int:
    """Filter and prepare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("paranmt", main))
