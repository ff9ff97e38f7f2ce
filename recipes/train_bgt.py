"""Train the bilingual generative transformer (EMNLP 2020), an ablation or a baseline, on English and another language.

    python recipes/train_bgt.py --lang es --data en-es.tsv.xz
    python recipes/train_bgt.py --lang es --data en-es.tsv.xz --objective bilingual-trans
    python recipes/train_bgt.py --lang fr --config recipes/configs/bgt_paper.yaml

It is `st-paragram train bgt`.
"""

import argparse
import sys

from st_paragram.cli.main import run_reporting_errors
from st_paragram.cli.train import add_bgt_options, train_on_pairs


def main() -> int:
    """Train, save and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_bgt_options(parser)
    return train_on_pairs(parser.parse_args())


if __name__ == "__main__":
    sys.exit(run_reporting_errors("train_bgt", main))
