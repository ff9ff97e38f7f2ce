"""Train the bilingual generative transformer (EMNLP 2020), an ablation or a baseline, on English
and another language.

    python recipes/train_bgt.py --lang es --data en-es.tsv.xz
    python recipes/train_bgt.py --lang es --data en-es.tsv.xz --objective bilingual-trans
    python recipes/train_bgt.py --lang fr --config bgt_paper

It is `st-paragram train bgt`.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "bgt", *sys.argv[1:]]))
