"""Put many results on one page: `python benchmarks/report.py results/*.json --output report.md
--plot report.png`.

Reads files by `st-paragram evaluate --json` for any number of models and benchmarks. Models are
distinguished by the digest of their content, not by their names. If several files have the same
score, the newest file is used. For each benchmark and measure, there is a table of models by sets,
x 100, with the 95% interval if it is known. The picture, with one bar per model and table, needs
`pip install "st_paragram[plots]"`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.output import new_file

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.extras import require
from st_paragram.core.files import atomic, write_text
from st_paragram.core.formatting import MISSING, hundredths, markdown_table
from st_paragram.errors import EvaluationError

# Okabe and Ito's palette for the color-blind.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#333333", "#999999")
# a row of `evaluate --json`: model, benchmark, set, measure, value, low, high, ...
Score = dict[str, Any]
_NEEDED = ("model", "benchmark", "set", "measure", "value")
# (benchmark, measure) -> model -> set -> score
Tables = dict[tuple[str, str], dict[str, dict[str, Score]]]


def read_scores(paths: Iterable[Path]) -> Tables:
    """Read the scores of files; newer files replace scores of older files; comparisons are left
    out.
    """
    rows: list[Score] = []
    for path in sorted(paths, key=lambda path: path.stat().st_mtime):
        try:
            own = [
                row
                for row in json.loads(path.read_text(encoding="utf-8"))
                if not row.get("against")
            ]
            rows += [{name: row[name] for name in _NEEDED} | row for row in own]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            seen = f"{path}: not a list of scores ({error!r})"
            raise EvaluationError(f"{seen}; make it with `st-paragram evaluate --json`") from error
    if not rows:
        raise EvaluationError(
            "the files have no scores; make them with `st-paragram evaluate --json`"
        )
    labels = _labels(rows)
    tables: Tables = {}
    for row in rows:
        models = tables.setdefault((row["benchmark"], row["measure"]), {})
        models.setdefault(labels[_identity(row)], {})[row["set"]] = row
    return tables


def _identity(row: Score) -> str:
    """Return the digest of the scored model; its name as given, if there is none."""
    return str(row.get("digest") or row["model"])


def _labels(rows: Iterable[Score]) -> dict[str, str]:
    """Return a label for each model: the name of its folder, with the digest if other models have
    the same name.
    """
    # of a renamed folder, the newest name
    names = {_identity(row): Path(row["model"]).name for row in rows}
    counts = Counter(names.values())
    return {
        key: name if counts[name] == 1 else f"{name} ({_shortened(key)})"
        for key, name in names.items()
    }


def _shortened(identity: str) -> str:
    return identity[:8] if re.fullmatch("[0-9a-f]{64}", identity) else f"{identity}, no digest"


def cell(score: Score | None) -> str:
    """Format a score x 100 with its interval."""
    if score is None:
        return MISSING
    known = score.get("low") is not None
    return hundredths(score["value"]) + (
        f" [{hundredths(score['low'])}, {hundredths(score['high'])}]" if known else ""
    )


def markdown(tables: Tables, picture: str = "") -> str:
    """Format the page."""
    parts = ["# Results\n", f"![Means over the sets]({picture})\n"] if picture else ["# Results\n"]
    for (benchmark, measure), models in tables.items():
        sets = list(dict.fromkeys(name for scores in models.values() for name in scores))
        rows = [
            [model, *(cell(scores.get(name)) for name in sets)] for model, scores in models.items()
        ]
        parts.append(
            f"## {benchmark}: {measure} x 100\n\n{markdown_table(['model', *sets], rows)}\n"
        )
    return "\n".join(parts)


def plot(tables: Tables, path: Path) -> None:
    """Draw bars of the mean over the sets that all models in a table have, one group per table."""
    require("matplotlib", "plots", "a picture")
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(model for models in tables.values() for model in models))
    groups = {
        f"{benchmark}\n{measure}": _means(models) for (benchmark, measure), models in tables.items()
    }
    figure = Figure(
        figsize=(max(5.0, 1.2 * len(groups) * len(names) ** 0.5), 4), layout="constrained"
    )
    axes = figure.subplots()
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        places = [
            place + number * width for place, means in enumerate(groups.values()) if name in means
        ]
        heights = [100 * means[name] for means in groups.values() if name in means]
        axes.bar(places, heights, width, label=name, color=COLORS[number % len(COLORS)])
    axes.set_xticks(
        [place + 0.4 - width / 2 for place in range(len(groups))], list(groups), fontsize=7
    )
    axes.set_ylabel("x 100")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    with atomic(path) as handle:
        figure.savefig(handle, dpi=110, format="png", metadata={"Software": None})


def _means(models: dict[str, dict[str, Score]]) -> dict[str, float]:
    common = set.intersection(*(set(scores) for scores in models.values()))
    values = {model: [scores[name]["value"] for name in common] for model, scores in models.items()}
    known = {
        model: [value for value in some if value is not None] for model, some in values.items()
    }
    return {model: fmean(some) for model, some in known.items() if some}


def main(given: Sequence[str] | None = None) -> int:
    """Read, draw and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scores", nargs="+", type=Path, metavar="FILE.json")
    parser.add_argument("--output", type=new_file, metavar="FILE.md", help="(default: print)")
    parser.add_argument(
        "--plot", type=new_file, metavar="FILE.png", help="also draw the means over sets"
    )
    arguments = parser.parse_args(given)
    tables = read_scores(arguments.scores)
    if arguments.plot:
        plot(tables, arguments.plot)
    page = markdown(tables, str(arguments.plot or ""))
    if arguments.output:
        write_text(arguments.output, page)
    else:
        print(page)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("report", main))
