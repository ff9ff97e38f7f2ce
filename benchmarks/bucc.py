"""BUCC 2018: translations hidden in two texts, found by mining.

    python benchmarks/bucc.py p-sp-mini --data eval --languages zh

Takes the options of `st-paragram evaluate`, and prints its tables.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:], "--benchmarks", "bucc"]))
