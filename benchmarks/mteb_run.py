"""mteb's own scores: `python benchmarks/mteb_run.py MODEL... --tasks STS12 STS17 Tatoeba --data DIR`.

With `--data` the tasks of mteb are fed from local files (DIR/sts2012/MSRpar.tsv ..., DIR/sts2017/track5.en-en.tsv ...,
DIR/stsb/en-test.tsv, DIR/tatoeba/spa-eng.tsv ..., DIR/bucc2018/zh-en.sample.zh ...) and need no network; without it
mteb fetches its data from the hub, and any task of mteb will do. `--output DIR` keeps mteb's results files; what is
there for the same weights and data is reused. Prints a Markdown table, x 100; `--json FILE` writes a record.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.tools.evaluation.mteb.data import LOCAL_TASKS


def main() -> int:
    """Score every model on every task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--tasks", nargs="+", default=LOCAL_TASKS, help=f"default: {' '.join(LOCAL_TASKS)}")
    parser.add_argument("--data", type=Path, metavar="DIR", help="local files instead of the hub")
    parser.add_argument("--languages", nargs="+", default=(), help="codes (spa, es) or subsets (es-en); default: all")
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep mteb's own results files")
    parser.add_argument("--overwrite", action="store_true", help="score anew what --output has already")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    os.environ.setdefault("TQDM_DISABLE", "1")  # read when libraries are imported; mteb draws hundreds of bars

    from harness.scripts import finish

    from st_paragram.tools.evaluation.benchmark_runs import run_mteb

    where = arguments.data, arguments.languages, arguments.output, arguments.overwrite
    return finish(run_mteb(arguments.models, arguments.tasks, *where), arguments.json)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mteb_run", main))
