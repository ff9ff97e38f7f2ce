"""Mine translations out of two texts: `python recipes/mine_bitext.py --source a.en --target a.es --model p-sp-es`.

The same as `st-paragram mine`: sentences are embedded, each side searched for the neighbours of the other, pairs scored
by how much closer they are than their neighbourhoods, and written best first as `score TAB source TAB target`. What is
mined can be trained on: `cut -f 2,3 pairs.tsv > mined.tsv; st-paragram prepare --lang es --text mined.tsv ...`.
"""

from __future__ import annotations

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.mine import add_options, run


def main() -> int:
    """Mine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mine_bitext", main))
