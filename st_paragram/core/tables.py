"""Markdown tables, as benchmarks print them and reports keep them."""

from __future__ import annotations

import math
from collections.abc import Sequence

MISSING = "-"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    r"""A Markdown table without a final newline: the first `left` columns to the left, the others to the right.

    A `|` inside a cell is escaped and a line break becomes a space, so that neither can shift the columns.
    """
    rule = "| --- " * left + "| ---: " * (len(head) - left) + "|"
    return "\n".join([_line(head), rule, *map(_line, rows)])


def hundredths(value: float | None, digits: int = 1) -> str:
    """A share as the papers print it, times 100; `-` where there is none (None or NaN)."""
    return MISSING if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
