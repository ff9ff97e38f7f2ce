"""Hard STS: `python benchmarks/hard_sts.py MODEL... --data FOLDER`.

Splits of STS 2012-2016 where likeness in words misleads (symmetric word error rate against grade) and with a negation
on one side, after BGT (Wieting et al., EMNLP 2020). The folder is that of benchmarks/sts.py; `--hub` fetches what it
lacks. Prints Markdown tables with the paper's rows and numbers of pairs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.scripts import data_or_hub, finish

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.benchmark_runs import run_hard_sts
from st_paragram.tools.evaluation.sts.catalogue import YEARS
from st_paragram.tools.evaluation.sts.sts_files import find_sts


def main() -> int:
    """Score every model on every split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--hub", action="store_true", help="fetch from the Hugging Face hub what the folder lacks")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    data_or_hub(arguments)
    found = run_hard_sts(arguments.models, find_sts(arguments.data, YEARS, arguments.hub))
    return finish(found, arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("hard_sts", main))
