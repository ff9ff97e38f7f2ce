"""Tables that are printed while their rows are measured."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from st_paragram.core.tables import markdown_table


def print_growing(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table row by row, as the rows are measured."""
    for number, row in enumerate(rows):
        table = markdown_table(head, [row])
        say(table if number == 0 else table.split("\n")[-1])


def say(text: str) -> None:
    """Print a text at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
