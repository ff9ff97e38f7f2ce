"""The filter `swapped`: languages by the tokens of an included model, p-sp-base or p-sp-large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.model_directory.find import shipped_folder, whole_model
from st_paragram.core.model_directory.languages import read_languages
from st_paragram.core.settings import setting
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.tools.cleaning.base import Row, RowFilter, options
from st_paragram.tools.cleaning.languages import short_code


@options
class Swapped(RowFilter):
    """Drop pairs with exchanged sides, or with a side in another language.

    A language is recognized by the share of a text's tokens that occur in the training text of
    p-sp-base in this language, or of p-sp-large if p-sp-base does not know both. Pairs in other
    languages are kept. It needs no extra package.
    """

    name = "swapped"
    reasons = ("swapped sides", "other language")

    languages: tuple[str, str]
    min_difference: float = setting(
        0.05, "difference between the shares of two languages that exchanges sides", ge=0
    )
    min_other: float = setting(
        0.15, "difference between the shares that makes one side another language", ge=0
    )
    min_characters: int = setting(
        30, "minimum characters of one side in another language, because names have none", ge=0
    )

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return, for each row, the reason to drop it, or None to keep it."""
        first, second = (short_code(code) for code in self.languages)
        tokenizer, pieces = _pieces(whole_model((first, second)))
        if not rows or first == second or not {first, second} <= pieces.keys():
            return [None] * len(rows)
        sides = [_shares([row[side] for row in rows], tokenizer, pieces) for side in (0, 1)]
        exchanged = sides[0][second] - sides[0][first] + sides[1][first] - sides[1][second]
        is_exchanged = exchanged > self.min_difference
        is_other = np.zeros(len(rows), np.bool_)
        is_third = np.zeros(len(rows), np.bool_)
        for side, code in enumerate((first, second)):
            shares = sides[side]
            is_long = np.array([len(row[side]) >= self.min_characters for row in rows])
            limit = np.max(list(shares.values()), axis=0) - self.min_other
            is_other |= is_long & (shares[code] < limit)
            is_third |= is_long & (np.maximum(shares[first], shares[second]) < limit)
        reasons: list[str | None] = [None] * len(rows)
        for place in np.flatnonzero(is_exchanged | is_other):
            is_swap = is_exchanged[place] and not is_third[place]
            reasons[place] = "swapped sides" if is_swap else "other language"
        return reasons


@cache
def _pieces(name: str) -> tuple[Tokenizer, dict[str, NDArray[np.bool_]]]:
    """Return the tokenizer of a model, and which of its V tokens a language has, bool (V,)."""
    from st_paragram.core.encoding.encoder import Encoder

    folder = shipped_folder(name)
    tokenizer = Encoder(folder).tokenizer
    pieces = {}
    for language, bits in read_languages(folder).items():
        pieces[language] = np.unpackbits(bits, count=len(tokenizer)).astype(np.bool_)
    return tokenizer, pieces


def _shares(
    texts: list[str], tokenizer: Tokenizer, pieces: Mapping[str, NDArray[np.bool_]]
) -> dict[str, NDArray[np.float64]]:
    """Return the share of each text's tokens that occur in a language, (texts,)."""
    ids, offsets = tokenizer.encode(texts)
    counts = np.maximum(np.diff(offsets), 1)
    shares = {}
    for language, occurs in pieces.items():
        sums = np.concatenate([[0], np.cumsum(occurs[ids])])
        shares[language] = np.diff(sums[offsets]) / counts
    return shares
