"""mteb's own scores: `python benchmarks/mteb_run.py MODEL... --tasks STS12 STS17 Tatoeba --data DIR`.

With `--data` the tasks of mteb are fed from local files (DIR/sts2012/MSRpar.tsv ..., DIR/sts2017/track5.en-en.tsv ...,
DIR/stsb/en-test.tsv, DIR/tatoeba/spa-eng.tsv ..., DIR/bucc2018/zh-en.sample.zh ...) and need no network; without it
mteb fetches its data from the hub, and any task of mteb will do. `--output DIR` keeps mteb's results files; what is
there for the same weights and data is reused. Prints a Markdown table, x 100; `--json FILE` writes a record.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors

DEFAULT_TASKS = "STS12 STS13 STS14 STS15 STS16 STS17 STSBenchmark Tatoeba BUCC.v2"
SHOWN = ("cosine_spearman", "cosine_pearson", "f1", "accuracy")

Results = dict[str, dict[str, dict[str, dict[str, float]]]]


def main() -> int:
    """Score every model on every task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--tasks", nargs="+", default=DEFAULT_TASKS.split(), help=f"default: {DEFAULT_TASKS}")
    parser.add_argument("--data", type=Path, metavar="DIR", help="local files instead of the hub")
    parser.add_argument("--languages", nargs="+", default=(), help="codes (spa, es) or subsets (es-en); default: all")
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep mteb's own results files")
    parser.add_argument("--overwrite", action="store_true", help="score anew what --output has already")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()

    os.environ.setdefault("TQDM_DISABLE", "1")  # mteb shows bars for every few hundred sentences
    from st_paragram.evaluation.mteb.tasks import evaluate, make_tasks
    from st_paragram.evaluation.record import new_record, write_record

    logging.getLogger("mteb").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".* is superseded by ", UserWarning)  # the papers' tasks are asked for
    results: Results = {}
    revisions: dict[str, str] = {}
    for model in arguments.models:
        tasks = make_tasks(arguments.tasks, arguments.data, arguments.languages)
        revisions = {task.metadata.name: task.metadata.revision for task in tasks}
        results[model] = evaluate(model, tasks, arguments.output, arguments.overwrite)
    print("mteb's scores x 100 (STS: Spearman is the main score; Tatoeba, BUCC: F1)\n")
    print(table(results))
    if arguments.json:
        data = {"source": str(arguments.data or "hub"), "revisions": revisions}
        write_record(new_record("mteb", arguments.models, data, results), arguments.json)
    return 0


def table(results: Results) -> str:
    """A row for each task, subset and metric; where there are several subsets, their mean after them."""
    from st_paragram.tables import hundredths, markdown_table

    models = list(results)
    rows = []
    for task, subsets in results[models[0]].items():
        shown = [metric for metric in SHOWN if metric in next(iter(subsets.values()))] or ["main_score"]
        for metric in shown:
            scores = {model: [scores[metric] for scores in results[model][task].values()] for model in models}
            for index, subset in enumerate(subsets):
                rows.append([task, subset, metric, *(hundredths(scores[model][index]) for model in models)])
            if len(subsets) > 1:
                means = (hundredths(sum(values) / len(values)) for values in scores.values())
                rows.append([task, f"mean of {len(subsets)}", metric, *means])
    return markdown_table(["task", "subset", "metric", *models], rows)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mteb_run", main))
