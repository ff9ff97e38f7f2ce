r"""Train and score models for each row of a YAML file and each seed, and print a table.

    python benchmarks/sweep.py benchmarks/sweeps/psp.yaml --output psp --seeds 1 2 3 \
        --values lang=es text=en-es.tsv held_out=held-out.tsv eval=eval

    train: bitext --lang $lang --data $text --config small
    evaluate: --data $eval --benchmarks sts --sets stsb/dev
    columns: {STSb dev: sts stsb/dev Pearson, seconds: seconds}
    rows:
      default: ""
      margin 0.4: --margin 0.4
      words: --encoder word

`train` and `evaluate` are arguments of these commands. The options of a row are added to those for
all rows, and take precedence. `rows` can also be a list of such mappings: each combination of their
options is a row. `columns` names scores by benchmark, set and measure (default: all scores);
`seconds` is the time of training. `--values` replaces names such as `$lang`.
Finished work is not repeated, so an interrupted run can be resumed. The table has the mean over the
seeds, x 100 for scores, and the minimum and maximum.

`benchmarks/sweeps` has ablations of the papers, scored on development sets.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import sys
from itertools import product
from pathlib import Path
from statistics import fmean
from string import Template
from typing import Any

from harness.processes import command

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import MISSING, hundredths, markdown_table
from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError

KEYS = {"train", "evaluate", "rows", "columns"}
SECONDS = "seconds"


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
    found = {f"{row['benchmark']} {row['set']} {row['measure']}": row["value"] for row in rows}
    record = json.loads((model / "training.json").read_text(encoding="utf-8"))
    return found | {SECONDS: record["seconds"]}


def cell(values: list[float | None], column: str) -> str:
    """Format mean, minimum and maximum over the seeds: of scores x 100, or of seconds."""
    known = [value for value in values if value is not None]
    if not known:
        return MISSING
    figures = [fmean(known), min(known), max(known)]
    if column == SECONDS:
        mean, low, high = [f"{figure:.0f}" for figure in figures]
    else:
        mean, low, high = [hundredths(figure) for figure in figures]
    return f"{mean} ({low} - {high})" if len(known) > 1 else mean


def filled(texts: dict[str, Any], values: dict[str, str]) -> dict[str, Any]:
    """Replace names such as `$lang` in texts, and in mappings of texts."""
    result = {}
    for name, text in texts.items():
        is_mapping = isinstance(text, dict)
        result[name] = filled(text, values) if is_mapping else Template(text).substitute(values)
    return result


def read_sweep(path: Path, values: list[str]) -> dict[str, Any]:
    """Read `train`, `evaluate`, `rows` (names to options) and optionally `columns` (headers to
    scores).

    Args:
        path: A YAML file.
        values: `NAME=VALUE` for each `$NAME` in the file.
    """
    sweep = dict(read_yaml(path))
    axes = sweep.get("rows")
    if isinstance(axes, dict):
        axes = [axes]
    is_complete = KEYS - {"columns"} <= set(sweep) <= KEYS
    if not is_complete or not isinstance(axes, list):
        raise SettingsError(
            f"{path}: keys {', '.join(sweep)}; give train, evaluate, rows (names to options),"
            " columns"
        )
    rows = {}
    for options in product(*(axis.items() for axis in axes)):
        name = ", ".join(str(name) for name, _ in options)
        rows[name] = " ".join(option or "" for _, option in options)
    columns = sweep.pop("columns", None) or {}
    texts = {}
    for item in values:
        name, _, text = item.partition("=")
        texts[name] = text
    words = {name: shlex.quote(text) for name, text in texts.items()}
    try:
        return filled(sweep | {"rows": rows}, words) | {"columns": filled(columns, texts)}
    except (KeyError, ValueError) as error:
        raise SettingsError(f"{path}: give --values NAME=VALUE for {error}") from error


def main() -> int:
    """Run everything and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("sweep", type=Path, metavar="FILE.yaml")
    add("--output", type=Path, required=True, metavar="DIR", help="folder for models and scores")
    add("--seeds", type=int, nargs="+", default=[1, 2, 3], help="(%(default)s)")
    add("--values", nargs="+", default=[], metavar="NAME=VALUE", help="values of $NAME in the file")
    arguments = parser.parse_args()
    sweep = read_sweep(arguments.sweep, arguments.values)
    found: dict[str, list[dict[str, float]]] = {}
    for seed in arguments.seeds:
        for name, options in sweep["rows"].items():
            folder = arguments.output / re.sub(r"\W+", "-", name).strip("-")
            folder.mkdir(parents=True, exist_ok=True)
            train = f"{sweep['train']} {options}"
            found.setdefault(name, []).append(score(folder, train, sweep["evaluate"], seed))
    columns = sweep["columns"] or {key: key for runs in found.values() for key in runs[0]}
    rows = [
        [name, *(cell([run.get(key) for run in runs], key) for key in columns.values())]
        for name, runs in found.items()
    ]
    print(markdown_table(["row", *columns], rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("sweep", main))
