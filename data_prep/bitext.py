"""Download and prepare parallel text in one command: `python data_prep/bitext.py --lang es` (or
fr-es-de).

The same as `st-paragram bitext`: it downloads the corpora that P-SP was trained on, cleans them and
makes data/en-es.h5 for `python recipes/train_bitext.py --lang es`. If it is interrupted, the same
command resumes it.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["bitext", *sys.argv[1:]]))
