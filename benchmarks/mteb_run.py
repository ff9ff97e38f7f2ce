"""Run mteb tasks, which download their data: `python benchmarks/mteb_run.py p-sp-mini --tasks
STSBenchmark STS17`.
"""

from __future__ import annotations

import argparse
import sys

import st_paragram
from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.extras import require
from st_paragram.core.formatting import hundredths, markdown_table


def main() -> int:
    """Evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", metavar="MODEL", help="model directory, name or hub id")
    parser.add_argument(
        "--tasks", nargs="+", required=True, metavar="NAME", help="tasks such as STS17 or Tatoeba"
    )
    parser.add_argument(
        "--languages", nargs="+", metavar="CODE", help="ISO 639-3 codes such as spa (default: all)"
    )
    arguments = parser.parse_args()
    mteb = require("mteb", "eval", "tasks of mteb")
    tasks = mteb.get_tasks(tasks=arguments.tasks, languages=arguments.languages)
    found = mteb.evaluate(st_paragram.load(arguments.model), tasks, cache=None)
    rows = [[each.task_name, hundredths(each.get_score())] for each in found.task_results]
    print(markdown_table(["task", arguments.model], rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mteb_run", main))
