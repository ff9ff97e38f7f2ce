"""Train p-sp-en on English paraphrases (ParaNMT style): the same as `st-paragram train paraphrase`.

    st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
    python recipes/train_paraphrase.py
    python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-en').encode(['hello']).shape)"

Without data/en-en.h5 and --data it trains on built-in paraphrases: a demonstration. After Ctrl-C, --resume continues.
"""

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.train import add_paraphrase_options, train_on_pairs


def main() -> int:
    """Train, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_paraphrase_options(parser)
    return train_on_pairs(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_paraphrase", main))
