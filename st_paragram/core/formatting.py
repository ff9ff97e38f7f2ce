"""Values, lists and Markdown tables formatted for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: Maximum items of a list to show.
MOST = 12
MISSING = "-"  # a cell of a table without a value


def are_counts(values: Mapping[str, Any]) -> bool:
    """Whether all values of a mapping are whole numbers."""
    return bool(values) and all(type(value) is int for value in values.values())


def in_words(value: Any) -> str:
    """Format a JSON value in one line.

    Nested values are in brackets, counts of zero are left out, and long lists are truncated.
    """
    if value is None or value in ({}, [], (), ""):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return _mapping_in_words(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = ", ".join(in_words(item) for item in value[:MOST])
        return f"{items}, ... ({len(value)} in all)" if len(value) > MOST else items
    return " ".join(str(value).split())


def _mapping_in_words(values: Mapping[str, Any]) -> str:
    leave_out_zeros = are_counts(values)
    items = []
    for name, value in values.items():
        if leave_out_zeros and value == 0:
            continue
        text = in_words(value)
        if value and isinstance(value, Mapping | list | tuple):
            text = f"({text})"
        items.append(f"{name.replace('_', ' ')} {text}")
    return ", ".join(items) or "none"


def counted(count: int, thing: str) -> str:
    """Format a number of things whose plural ends in s."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def size_in_words(count: float) -> str:
    """Format a number of bytes: "1.2 GB"."""
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 10 else f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} GB"


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence: "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    r"""Format a Markdown table without a final newline.

    The first `left` columns are left-aligned, the rest right. A `|` inside a cell is escaped and a
    line break becomes a space, so that neither can shift the columns.
    """
    lines = [_line(head), "| --- " * left + "| ---: " * (len(head) - left) + "|"]
    for row in rows:
        lines.append(_line(row))
    return "\n".join(lines)


def hundredths(value: float | None) -> str:
    """Format a share times 100, as in the papers; `-` for None or NaN."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{100 * value:.1f}"


def _line(cells: Sequence[str]) -> str:
    texts = [str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(texts)} |"
