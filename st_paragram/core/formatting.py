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
    """Format a JSON value in one line: nested parts in brackets, without counts of zero, long lists
    truncated.
    """
    if value is None or value in ({}, [], (), ""):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    if isinstance(value, Mapping):
        shown = {name: part for name, part in value.items() if part != 0 or not are_counts(value)}
        return (
            ", ".join(
                f"{name.replace('_', ' ')} {_in_brackets(part)}" for name, part in shown.items()
            )
            or "none"
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        more = f", ... ({len(value)} in all)" if len(value) > MOST else ""
        return ", ".join(map(in_words, value[:MOST])) + more
    return " ".join(str(value).split())


def _in_brackets(value: Any) -> str:
    nested = value and isinstance(value, Mapping | Sequence) and not isinstance(value, str)
    return f"({in_words(value)})" if nested else in_words(value)


def counted(count: int, thing: str) -> str:
    """Format a number of things whose plural ends in s."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def size_in_words(count: float) -> str:
    """Format a number of bytes: "1.2 GB"."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.1f} GB"


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    r"""Format a Markdown table without a final newline; the first `left` columns are left-aligned,
    the rest right.

    A `|` inside a cell is escaped and a line break becomes a space, so that neither can shift the
    columns.
    """
    rule = "| --- " * left + "| ---: " * (len(head) - left) + "|"
    return "\n".join([_line(head), rule, *map(_line, rows)])


def hundredths(value: float | None, digits: int = 1) -> str:
    """Format a share times 100, as in the papers; `-` for None or NaN."""
    return MISSING if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    return (
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
    )
