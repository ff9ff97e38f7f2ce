"""Files of sentences and what belongs to them, line by line: styles, and references to measure outputs by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from st_paragram.core.text.streams import read_lines
from st_paragram.errors import TextError


@dataclass(frozen=True)
class Row:
    """A sentence and what belongs to it; None for what was not given.

    Attributes:
        source: What is written again, translated, or written in another style.
        style: A sentence that has the style.
        reference: What the output should be.
    """

    source: str
    style: str | None = None
    reference: str | None = None

    @property
    def blank(self) -> bool:
        """Whether nothing is written, since the source or the style is blank."""
        return not self.source.strip() or (self.style is not None and not self.style.strip())


def read_rows(sources: str, styles: str | None = None, references: str | None = None) -> Iterator[Row]:
    """Read files of equal length, one sentence per line, each plain or compressed or `-`.

    Raises:
        TextError: one is missing, cut off or not UTF-8; there is no line, or one file has fewer than another.
    """
    given = {"source": sources, "style": styles, "reference": references}
    paths = {name: path for name, path in given.items() if path is not None}
    number = 0
    for number, lines in enumerate(zip_longest(*map(read_lines, paths.values())), 1):
        if None in lines:
            short = list(paths.values())[lines.index(None)]
            raise TextError(f"{short}: ends after line {number - 1}, but another file goes on; give a line for each")
        yield Row(**dict(zip(paths, lines, strict=True)))
    if not number:
        raise TextError(f"{sources}: empty; give a text with at least one line")
