"""Train p-sp-LANG on pairs of English and another language: the same as `st-paragram train bitext`.

    st-paragram prepare --lang es --text en-es.tsv.xz --output data/en-es.h5
    python recipes/train_bitext.py --lang es
    python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-es').encode(['hola']).shape)"

Without data/en-es.h5 and --data it trains on the built-in bitext: a demonstration. After Ctrl-C,
--resume continues.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "bitext", *sys.argv[1:]]))
