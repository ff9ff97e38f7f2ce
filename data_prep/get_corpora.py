"""Download the parallel text of P-SP, other text from OPUS, or test sets: `python
data_prep/get_corpora.py --lang es`.

The same as `st-paragram download`. `--list` shows the corpora with licenses and citations. Complete
downloads are not repeated, and interrupted downloads are resumed.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["download", *sys.argv[1:]]))
