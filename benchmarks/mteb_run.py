"""Tasks of mteb, which downloads their data and writes its result files.

    python benchmarks/mteb_run.py p-sp-mini --tasks STSBenchmark STS17 --results results

Takes the options of `st-paragram evaluate`, and prints its table. Tasks whose data are in --data
DIR need no network.
"""

import sys

from st_paragram.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:], "--benchmarks", "mteb", "--hub"]))
