"""STS 2012-2017, the STS Benchmark and Hard STS, as the papers score them.

    python benchmarks/sts.py p-sp-mini p-sp-base --data eval

Takes the options of `st-paragram evaluate`, and prints its tables.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:], "--benchmarks", "sts", "hard-sts"]))
