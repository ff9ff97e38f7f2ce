"""Train a multilingual dual encoder (ACL 2020) on translations, questions and answers, responses and inference.

    python recipes/train_muse.py --architecture cnn --langs es de --bitext data/en-de-es.h5 --qa qa --nli nli
    python recipes/train_muse.py --architecture transformer --langs es --bitext texts --init p-sp-es --dim 1024
    python recipes/train_muse.py --langs es de --bitext texts --config recipes/configs/muse_transformer.yaml

It is `st-paragram train muse`.
"""

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.train import add_muse_options, train_muse


def main() -> int:
    """Train, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_muse_options(parser)
    return train_muse(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_muse", main))
