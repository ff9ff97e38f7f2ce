"""Train a multilingual dual encoder (ACL 2020) on translations, questions and answers, responses and inference.

    python recipes/train_muse.py --architecture cnn --langs es de --bitext data/en-de-es.h5 --qa qa --nli nli
    python recipes/train_muse.py --architecture transformer --langs es --bitext texts --init p-sp-es --dim 1024
    python recipes/train_muse.py --langs es de --bitext texts --config recipes/configs/muse_transformer.yaml

It is `st-paragram train muse`.
"""

import sys

from st_paragram.cli.train import run_recipe

if __name__ == "__main__":
    sys.exit(run_recipe("train_muse", "muse", __doc__))
