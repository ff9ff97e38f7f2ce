"""Mine translations in two texts: `python recipes/mine_bitext.py --source a.en --target a.es
--model p-sp-es`.

The same as `st-paragram mine`: it embeds sentences, searches each side for neighbors of the other,
scores pairs by how much closer they are than their other neighbors, and writes rows `score TAB
source TAB target`, best first. To train on mined pairs: `cut -f 2,3 pairs.tsv > mined.tsv;
st-paragram prepare --lang es --text mined.tsv ...`.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["mine", *sys.argv[1:]]))
