"""Mine translations out of two texts: `python recipes/mine_bitext.py --source a.en --target a.es --model p-sp-es`.

The same as `st-paragram mine`: sentences are embedded, each side searched for the neighbors of the other, pairs scored
by how much closer they are than their neighborhoods, and written best first as `score TAB source TAB target`. What is
mined can be trained on: `cut -f 2,3 pairs.tsv > mined.tsv; st-paragram prepare --lang es --text mined.tsv ...`.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["mine", *sys.argv[1:]]))
