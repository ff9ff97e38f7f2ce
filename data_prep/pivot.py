"""Paraphrases out of bitext: `python data_prep/pivot.py --text en-de:de.tsv.xz --text en-es:es.zip --output en-en.tsv`.

The same as `st-paragram pivot`: English sentences that have the same translation become pairs. Text is read as by
`st-paragram prepare`, and its prefix must name the languages of its columns. Filter the result like any other
paraphrases (data_prep/paranmt.py).
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["pivot", *sys.argv[1:]]))
