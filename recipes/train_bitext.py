"""Train p-sp-LANG on pairs of English and another language: the same as `st-paragram train bitext`.

    st-paragram prepare --lang es --text en-es.tsv.xz --output data/en-es.h5
    python recipes/train_bitext.py --lang es
    python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-es').encode(['hola']).shape)"

Without data/en-es.h5 and --data it trains on the built-in bitext: a demonstration. After Ctrl-C, --resume continues.
"""

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.train import add_bitext_options, train_on_pairs


def main() -> int:
    """Train, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_bitext_options(parser)
    return train_on_pairs(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_bitext", main))
