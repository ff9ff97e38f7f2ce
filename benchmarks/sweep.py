r"""Train and score one model for each row of a YAML file and each seed, and print a table.

    python benchmarks/sweep.py sweep.yaml --output sweep --seeds 1 2 3

    train: bitext --lang es --data data/en-es.h5 --config small
    evaluate: --data eval --benchmarks sts tatoeba --languages es
    columns: [sts all sets Pearson, tatoeba spa error]
    rows:
      default: ""
      margin 0.4: --margin 0.4
      words: --encoder word --data data/en-es-words.h5

`train` and `evaluate` are arguments of these commands. The options of a row are added to those for
all rows, and take precedence. `columns` names scores by benchmark, set and measure (default: all).
Finished work is not repeated, so an interrupted run can be resumed. The table has the mean over the
seeds x 100, and the minimum and maximum.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.processes import command

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import MISSING, hundredths, markdown_table
from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError

KEYS = {"train", "evaluate", "rows", "columns"}


def score(folder: Path, train: str, evaluate: str, seed: int) -> dict[str, float]:
    """Train and evaluate, unless it was done with the same arguments; return scores by name."""
    digest = hashlib.sha256(json.dumps([train, evaluate, seed]).encode()).hexdigest()[:8]
    model, scores = folder / f"{folder.name}-{digest}", folder / f"{digest}.json"
    is_trained = (model / "modules.json").is_file()
    if not is_trained:
        print(f"{folder.name}, seed {seed}: training", file=sys.stderr, flush=True)
        command("train", *shlex.split(train), "--output", model, "--seed", str(seed)).run()
    if not (is_trained and scores.is_file()):
        command("evaluate", model, *shlex.split(evaluate), "--json", scores).run()
    rows: list[dict[str, Any]] = json.loads(scores.read_text(encoding="utf-8"))
    return {f"{row['benchmark']} {row['set']} {row['measure']}": row["value"] for row in rows}


def cell(values: list[float | None]) -> str:
    """Format mean, minimum and maximum over the seeds x 100."""
    known = [value for value in values if value is not None]
    if not known:
        return MISSING
    ends = f" ({hundredths(min(known))} - {hundredths(max(known))})" if len(known) > 1 else ""
    return hundredths(fmean(known)) + ends


def read_sweep(path: Path) -> dict[str, Any]:
    """Read the file: `train`, `evaluate`, `rows` (names to options) and optionally `columns`."""
    sweep = dict(read_yaml(path))
    if not KEYS - {"columns"} <= set(sweep) <= KEYS or not isinstance(sweep["rows"], dict):
        raise SettingsError(
            f"{path}: keys {', '.join(sweep)}; give train, evaluate, rows (names to options),"
            " columns"
        )
    return sweep


def main() -> int:
    """Run everything and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sweep", type=Path, metavar="FILE.yaml")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder for models and scores"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="(%(default)s)")
    arguments = parser.parse_args()
    sweep = read_sweep(arguments.sweep)
    found: dict[str, list[dict[str, float]]] = {}
    for seed in arguments.seeds:
        for name, options in sweep["rows"].items():
            folder = arguments.output / re.sub(r"\W+", "-", str(name)).strip("-")
            folder.mkdir(parents=True, exist_ok=True)
            train = f"{sweep['train']} {options or ''}"
            found.setdefault(str(name), []).append(score(folder, train, sweep["evaluate"], seed))
    columns = sweep.get("columns") or list(
        dict.fromkeys(key for runs in found.values() for key in runs[0])
    )
    rows = [
        [name, *(cell([run.get(key) for run in runs]) for key in columns)]
        for name, runs in found.items()
    ]
    print(markdown_table(["row", *columns], rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("sweep", main))
