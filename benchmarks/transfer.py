"""Accuracy on SentEval's transfer tasks: `python benchmarks/transfer.py MODEL... --data DIR`.

DIR, or its folder `transfer`, holds MR.tsv, CR.tsv, SUBJ.tsv, MPQA.tsv, TREC.train.tsv and .test.tsv, SST2.train.tsv,
.dev.tsv and .test.tsv, rows `label TAB text`, plain or compressed, or some of the tasks. A logistic regression learns
from frozen embeddings. Needs scikit-learn: `st_paragram[probing]`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.scripts import finish

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.transfer import run_transfer
from st_paragram.tools.evaluation.transfer_files import read_transfer


def main() -> int:
    """Score every model on every task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    return finish(run_transfer(arguments.models, read_transfer(arguments.data), arguments.untrained), arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("transfer", main))
