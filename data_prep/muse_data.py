"""Rows for dual encoders: `python data_prep/muse_data.py --kind squad --lang tr train-v0.1.json --output qa`.

The same as `st-paragram tasks`: public files in the form of SQuAD, lists of frequent questions, dialogues and inference
become LANG.tsv of questions and answers, responses, and labeled premises and hypotheses. `--list` shows sources.
"""

import sys

from st_paragram.cli.main import run_script

if __name__ == "__main__":
    sys.exit(run_script("muse_data", "tasks", __doc__))
