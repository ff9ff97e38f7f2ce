"""Train an encoder of ACL 2019 on pairs of English and another language: words, trigrams,
sentencepiece or BiLSTM.

    python recipes/train_sp.py --lang es --data en-es.tsv.xz --encoder trigram
    python recipes/train_sp.py --lang es --data en-es.tsv.xz --encoder blstm --scramble 0.3
    python recipes/train_sp.py --lang en --data paraphrases.tsv.xz --encoder word

It is `st-paragram train bitext` with the paper's settings, the configuration sp2019, by default.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "bitext", "--config", "sp2019", *sys.argv[1:]]))
