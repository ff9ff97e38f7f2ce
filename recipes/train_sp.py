"""Train an encoder of ACL 2019 on pairs of English and another language: words, trigrams, sentencepiece or BiLSTM.

    python recipes/train_sp.py --lang es --data en-es.tsv.xz --encoder trigram
    python recipes/train_sp.py --lang es --data en-es.tsv.xz --encoder blstm --scramble 0.3 --epochs 1
    python recipes/train_sp.py --lang en --data paraphrases.tsv.xz --encoder word

It is `st-paragram train bitext` with the paper's settings (recipes/configs/sp2019.yaml) where no others are named.
"""

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.train import add_bitext_options, train_on_pairs


def main() -> int:
    """Train, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_bitext_options(parser, default_config="sp2019")
    return train_on_pairs(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_sp", main))
