"""Sentences and their translations, for the retrieval of one by the other."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import TextError


@dataclass(frozen=True)
class Translations:
    """n sentences and their translations.

    Args:
        name: of the set; of a Tatoeba set the code of the first side's language.
        first: n sentences.
        second: their translations, in the same order.
    """

    name: str
    first: list[str]
    second: list[str]

    def __len__(self) -> int:
        """The number of pairs, n."""
        return len(self.first)


def read_translations(source: TextSource, name: str) -> Translations:
    """Read the two sides of a text.

    Raises:
        TextError: as `read_pairs`, or a sentence is empty; the message names file and row.
    """
    pairs = list(read_pairs(source))
    for row, pair in enumerate(pairs, start=1):
        if not all(text.strip() for text in pair):
            raise TextError(f"{source.name}: row {row}: an empty sentence; complete the row or take it out")
    return Translations(name, [first for first, _ in pairs], [second for _, second in pairs])
