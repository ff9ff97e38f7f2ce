"""Train p-sp-en on English paraphrases (ParaNMT style): the same as `st-paragram train paraphrase`.

    st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
    python recipes/train_paraphrase.py
    python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-en').encode(['hello']).shape)"

Without data/en-en.h5 and --data it trains on built-in paraphrases: a demonstration. After Ctrl-C,
--resume continues.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "paraphrase", *sys.argv[1:]]))
