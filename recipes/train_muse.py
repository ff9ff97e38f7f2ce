"""Train a multilingual dual encoder (ACL 2020) on translations, questions and answers, responses
and inference.

    python recipes/train_muse.py --architecture cnn --langs es de --bitext data/en-de-es.h5 --qa qa --nli nli
    python recipes/train_muse.py --architecture transformer --langs es --bitext texts --init p-sp-es --dim 1024
    python recipes/train_muse.py --langs es de --bitext texts --config muse_transformer

It is `st-paragram train muse`.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "muse", *sys.argv[1:]]))
