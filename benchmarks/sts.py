"""STS 2012-2017 and the STS Benchmark: `python benchmarks/sts.py MODEL... --data FOLDER`.

A model is a directory of ours, a name, or any SentenceTransformer's directory. The folder holds `sts2012/MSRpar.tsv`,
... or the layout of SentEval and of the tasks' releases (`STS12-en-test/STS.input.MSRpar.txt`, ...); `--hub` fetches
what it does not hold. Prints Markdown tables by the papers' protocol, Sentence-BERT's and mteb's, with published rows,
95 % bootstrap intervals, and with `--compare` every model against the first on the same resamples.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.scripts import data_or_hub, finish

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.benchmark_runs import run_sts
from st_paragram.tools.evaluation.bootstrap import RESAMPLES
from st_paragram.tools.evaluation.sts.sts_files import find_sts


def main() -> int:
    """Score every model on everything there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--hub", action="store_true", help="fetch from the Hugging Face hub what the folder lacks")
    parser.add_argument(
        "--only", "--years", action="append", default=[], metavar="NAME,...", help="2012, 2017/en-en, stsb/dev, ..."
    )
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--compare", action="store_true", help="compare every model with the first")
    parser.add_argument("--bootstrap", type=int, default=RESAMPLES, metavar="N", help="resamples; 0 for none")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    data_or_hub(arguments)
    only = [name for part in arguments.only for name in part.split(",") if name]
    data = find_sts(arguments.data, only, arguments.hub)
    found = run_sts(arguments.models, data, arguments.untrained, arguments.compare, arguments.bootstrap, arguments.seed)
    return finish(found, arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("sts", main))
