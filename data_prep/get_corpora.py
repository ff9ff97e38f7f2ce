"""Fetch the parallel text of the papers, any other of OPUS, or test sets: `python data_prep/get_corpora.py --lang es`.

The same as `st-paragram download`. corpora.yaml says which corpora there are, under which licence, and whom to cite;
`--list` shows it. Complete downloads are not fetched again, interrupted ones are resumed.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["download", *sys.argv[1:]]))
