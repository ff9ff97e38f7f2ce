"""Format scores as Markdown tables, next to the papers' figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path

import yaml

from st_paragram.core.formatting import MISSING, hundredths, listed, markdown_table
from st_paragram.tools.evaluation.scores import Score

Label = Callable[[Score], str]
MODEL: Label = attrgetter("model")
SET: Label = attrgetter("set")
MEASURE: Label = attrgetter("measure")
MAJORITY = "majority"  # in place of a model
MAJORITY_NOTE = "The row *majority* is the accuracy of always choosing the most frequent label."


@dataclass(frozen=True)
class PublishedRow:
    """The figures of a model in a paper."""

    label: str  # model and venue
    figures: dict[str, str]  # by column, x 100, as printed


@cache
def published() -> dict[str, list[PublishedRow]]:
    """Return the rows of each table in `published.yaml`."""
    text = Path(__file__).with_name("published.yaml").read_text(encoding="utf-8")
    tables = {}
    for table, groups in yaml.load(text, yaml.BaseLoader).items():
        rows = []
        for group in groups:
            venue = group["source"].rpartition(", ")[2].removesuffix(" (demo)")
            for model, cells in group["rows"].items():
                figures = dict(zip(group["columns"], cells.split(), strict=True))
                rows.append(PublishedRow(f"{model} (published, {venue})", figures))
        tables[table] = rows
    return tables


def published_columns(table: str) -> list[str]:
    """Return the columns of the first row of a table in `published.yaml`."""
    return list(published()[table][0].figures)


def grouped(scores: Iterable[Score], label: Label) -> dict[str, list[Score]]:
    """Return label -> its scores, in their order."""
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(label(score), []).append(score)
    return groups


def section(
    title: str,
    scores: Sequence[Score],
    *,
    note: str = "",
    column: Label = SET,
    row: Label = MODEL,
    published_table: str = "",
    corner: str = "model",
    headings: Iterable[str] = (),
) -> Iterator[str]:
    """Yield a table of scores x 100 with a heading, or nothing without scores.

    Scores in the same cell are joined by a backslash.

    Args:
        title: Heading of the section.
        scores: The scores.
        note: Text after the table.
        column: Returns the heading of a score's column.
        row: Returns the label of a score's row.
        published_table: A table of published rows, which has sets as columns; rows with a figure in
            one of our columns are added.
        corner: Heading of the row labels.
        headings: Names of sets that are always columns.
    """
    if not scores:
        return
    sets = {heading: heading for heading in headings}
    for score in scores:
        sets[column(score)] = score.set
    lines = []
    for label, row_scores in grouped(scores, row).items():
        cells = grouped(row_scores, column)
        lines.append([label, *(_cell(cells.get(heading, [])) for heading in sets)])
    if published_table:
        for published_row in published()[published_table]:
            figures = [published_row.figures.get(name, MISSING) for name in sets.values()]
            if set(figures) != {MISSING}:
                lines.append([published_row.label, *figures])
    end = f"\n{note}\n" if note else ""
    yield f"### {title}\n\n{markdown_table([corner, *sets], lines)}\n{end}"


def differences(scores: Iterable[Score]) -> Iterator[str]:
    """Yield a table of the comparisons among the scores, if there are any."""
    rows = []
    first_model = ""
    for score in scores:
        if not score.against:
            continue
        first_model = first_model or score.against
        interval = f"{_signed(score.low)} .. {_signed(score.high)}"
        p = "undefined" if score.p_value is None else f"{score.p_value:.4f}"
        rows.append([score.set, score.model, score.measure, _signed(score.value), interval, p])
    if rows:
        head = ["set", "model", "measure", "difference", "95% interval", "p"]
        table = markdown_table(head, rows, left=3)
        yield f"### Differences from {first_model} x 100: paired bootstrap\n\n{table}\n"


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
    if first.measure.endswith("threshold"):
        return f"{first.value:.4f}"
    figures = "\\".join([hundredths(score.value) for score in scores])
    if first.low is None:
        return figures
    return f"{figures} [{hundredths(first.low)}, {hundredths(first.high)}]"


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{100 * value:+.1f}"
