"""Markdown tables for benchmarks and reports."""

from __future__ import annotations

import math
from collections.abc import Sequence

MISSING = "-"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    r"""Format a Markdown table without a final newline; the first `left` columns are left-aligned, the rest right.

    A `|` inside a cell is escaped and a line break becomes a space, so that neither can shift the columns.
    """
    rule = "| --- " * left + "| ---: " * (len(head) - left) + "|"
    return "\n".join([_line(head), rule, *map(_line, rows)])


def hundredths(value: float | None, digits: int = 1) -> str:
    """Format a share times 100, as in the papers; `-` for None or NaN."""
    return MISSING if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
