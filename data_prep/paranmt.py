"""Paraphrases with scores to a pair store: `python data_prep/paranmt.py --text para-nmt-50m.txt --sim-low 0.4`.

The same as `st-paragram paranmt`: it filters by language labels, paraphrase scores, word-trigram overlap and length,
drops repeated pairs, and makes the pair store data/en-en.h5 for `python recipes/train_paraphrase.py`.
"""

import sys

from st_paragram.cli.main import run_script

if __name__ == "__main__":
    sys.exit(run_script("paranmt", "paranmt", __doc__))
