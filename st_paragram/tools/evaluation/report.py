"""Format scores as Markdown tables, next to the papers' figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml

from st_paragram.core.formatting import MISSING, hundredths, listed, markdown_table
from st_paragram.tools.evaluation.scores import Score

Label = Callable[[Score], str]
MEASURE: Label = attrgetter("measure")


@cache
def published() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the papers' figures x 100: table -> row label -> column -> cell, as printed."""
    text = Path(__file__).with_name("published.yaml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for table, groups in yaml.load(text, yaml.BaseLoader).items():
        rows = tables.setdefault(table, {})
        for group in groups:
            columns = [name.replace("all_sets", "all sets") for name in group["columns"].split()]
            venue = group["source"].rpartition(", ")[2].removesuffix(" (demo)")
            for model, cells in group["rows"].items():
                rows[f"{model} (published, {venue})"] = dict(
                    zip(columns, cells.split(), strict=True)
                )
    return tables


def pivot(
    scores: Iterable[Score],
    column: Label = lambda score: score.set,
    row: Label = lambda score: score.model,
    known: str = "",
    first: str = "model",
    headings: Iterable[str] = (),
) -> str:
    """Return a table of scores x 100; scores in the same cell are joined by a backslash.

    `known` names a table of published rows with sets as columns; rows with a figure in one of our
    columns are added. `first` is the heading of the row labels. `headings` are names of sets that
    are always columns.
    """
    cells: dict[str, dict[str, list[Score]]] = {}
    sets = {heading: heading for heading in headings}
    for score in scores:
        cells.setdefault(row(score), {}).setdefault(column(score), []).append(score)
        sets[column(score)] = score.set
    rows = [
        [label, *(_cell(row_cells.get(heading, ())) for heading in sets)]
        for label, row_cells in cells.items()
    ]
    for label, figures in published()[known].items() if known else ():
        shown = [figures.get(name, MISSING) for name in sets.values()]
        rows += [[label, *shown]] if set(shown) != {MISSING} else []
    return markdown_table([first, *sets], rows)


def section(title: str, scores: Sequence[Score], note: str = "", **layout: Any) -> Iterator[str]:
    """Yield a table with a heading (see `pivot` for its layout), or nothing without scores."""
    if scores:
        yield f"### {title}\n\n{pivot(scores, **layout)}\n" + (f"\n{note}\n" if note else "")


def differences(scores: Iterable[Score]) -> Iterator[str]:
    """Yield a table of the comparisons among the scores, if there are any."""
    compared = [score for score in scores if score.against]
    if not compared:
        return
    rows = []
    for score in compared:
        ends = f"{_signed(score.low)} .. {_signed(score.high)}"
        p = "undefined" if score.p_value is None else f"{score.p_value:.4f}"
        rows.append([score.set, score.model, score.measure, _signed(score.value), ends, p])
    table = markdown_table(
        ["set", "model", "measure", "difference", "95% interval", "p"], rows, left=3
    )
    yield f"### Differences from {compared[0].against} x 100: paired bootstrap\n\n{table}\n"


def not_comparable(names: Sequence[str]) -> str:
    """Return the line that explains why published figures are missing."""
    return (
        "Published figures are omitted because the data are not the published test set:"
        f" {listed(names)}."
    )


def _cell(scores: Sequence[Score]) -> str:
    if not scores:
        return MISSING
    if all(score.value is None for score in scores):
        return "undefined"
    first = scores[0]
    ends = "" if first.low is None else f" [{hundredths(first.low)}, {hundredths(first.high)}]"
    if first.measure.endswith("threshold"):
        return f"{first.value:.4f}"
    return "\\".join(hundredths(score.value) for score in scores) + ends


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{100 * value:+.1f}"
