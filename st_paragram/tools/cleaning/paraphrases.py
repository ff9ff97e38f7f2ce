"""Filters for paraphrases and further columns: `overlap`, `paraphrase_score` and `label`."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import regex

from st_paragram.core.settings import setting
from st_paragram.core.text.words import SPACED, UNIT
from st_paragram.errors import SettingsError, TextError, short
from st_paragram.tools.cleaning.base import Row, RowFilter, options

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

_QUOTES = str.maketrans("‘’‚‛ʼ“”„‟«»", "'" * 5 + '"' * 6)
_WORD = regex.compile(
    rf"{UNIT}|'?{SPACED}(?:{SPACED}|[-./_](?={SPACED})|(?<=\d)[,:](?=\d))*|[^\s]", regex.VERSION1
)
_NUMBER = regex.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", regex.IGNORECASE)


@options
class Overlap(RowFilter):
    """Drop rows whose two texts share too many word trigrams (Wieting and Gimpel 2018,
    ParaNMT-50M).

    The overlap is the number of distinct trigrams in both texts, divided by the number in the text
    with fewer trigrams; `tokens` defines words. A text of fewer than three words has no overlap.
    """

    name = "overlap"
    reasons = ("n-gram overlap",)

    max_overlap: float = setting(0.7, "maximum share of word trigrams in common", ge=0, le=1)
    lower_case: bool = setting(True, "ignore case")

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        overlap = trigram_overlap(row[0], row[1], self.lower_case)
        return "n-gram overlap" if overlap > self.max_overlap else None


def trigram_overlap(first: str, second: str, lower_case: bool = True) -> float:
    """Return the share of distinct trigrams of the text with fewer that the other text has."""
    if lower_case:
        first = first.lower()
        second = second.lower()
    first_trigrams = _trigrams(first)
    second_trigrams = _trigrams(second)
    fewer = min(len(first_trigrams), len(second_trigrams))
    return len(first_trigrams & second_trigrams) / max(fewer, 1)


def _trigrams(text: str) -> set[tuple[str, str, str]]:
    words = tokens(text)
    return set(zip(words, words[1:], words[2:], strict=False))


def tokens(text: str) -> list[str]:
    """Split a text into words.

    A word is a run of letters, marks and digits. It may have the characters ``- . / _`` between two
    of them, and ``,`` or ``:`` between two digits. An apostrophe begins a word if a letter or digit
    follows (``don 't``). All other characters are separate words, and so is every character of a
    script without spaces, with its marks. This follows NLTK's Treebank tokens where it matters for
    word n-grams and their number.
    """
    return _WORD.findall(text.translate(_QUOTES))


@options
class ParaphraseScore(RowFilter):
    """Drop rows whose score is below `low` or above `high` (EMNLP 2022, ParaNMT: 0.4 and 1).

    The score is a number in a further column, or the cosine of the embeddings of the two texts.
    """

    name = "paraphrase_score"
    reasons = ("score too low", "score too high", "no known token")

    low: float = setting(0.4, "minimum score")
    high: float = setting(1.0, "maximum score")
    column: int | None = setting(
        0, "column of the score after the two texts, from 0, unless a model is given", ge=0
    )
    model: str | None = setting(
        None, "directory, name or hub id of a model from this package to score the texts"
    )

    def __post_init__(self) -> None:
        """Check combinations of options."""
        if self.high < self.low:
            raise SettingsError(f"high is {self.high:g}; it must be at least low ({self.low:g})")
        if self.model == "" or (self.model is None and self.column is None):
            raise SettingsError(
                f"model is {self.model!r} and column is {self.column!r}; give exactly one of them"
            )

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return the reason for rows with a score outside the limits.

        With a model, the reason of rows with a text without a known token is "no known token".
        """
        return [self._reason_of_score(score) for score in self.scores(rows)]

    def _reason_of_score(self, score: float) -> str | None:
        if math.isnan(score):
            return "no known token"
        if score < self.low:
            return "score too low"
        return "score too high" if score > self.high else None

    def scores(self, rows: Sequence[Row]) -> list[float]:
        """Return the scores of rows; NaN if the model knows no token of a text."""
        if self.model is None:
            return [self._given(row) for row in rows]
        from st_paragram.core.encoding.unit_embeddings import unit_embeddings

        first = unit_embeddings(self._encoder, [row[0] for row in rows], normalize_embeddings=True)
        second = unit_embeddings(self._encoder, [row[1] for row in rows], normalize_embeddings=True)
        # Rounding may raise the cosine of equal texts above 1, so that `high` would drop them.
        cosines = np.einsum("nd,nd->n", first.vectors, second.vectors, dtype=np.float64)
        scores = np.minimum(cosines, 1.0)
        scores[~(first.known & second.known)] = math.nan
        return scores.tolist()

    def identity(self) -> dict[str, Any]:
        """Return the options, with the digest of the model's files instead of its name."""
        options = super().identity()
        if self.model is not None:
            from st_paragram.core.model_directory.configuration import fingerprint
            from st_paragram.core.model_directory.find import find

            options.update(column=None, model=fingerprint(find(self.model)))
        return options

    def _given(self, row: Row) -> float:
        text = further_column(row, self.column or 0, self.name)
        if not _NUMBER.fullmatch(text):
            raise TextError(
                f"{self.name}: {short(text, 40)} in column {self.column} after the two texts is not"
                " a number; check the columns"
            )
        return float(text)

    @cached_property
    def _encoder(self) -> TextEncoder:
        from st_paragram.core.encoding.models import load_encoder

        # other workers use the other cores
        threads = 1 if multiprocessing.parent_process() else None
        return load_encoder(self.model or "", threads)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the model, which each process loads."""
        return {name: value for name, value in self.__dict__.items() if name != "_encoder"}


@options
class Label(RowFilter):
    """Keep rows with a given value in a further column, for example a language label."""

    name = "label"
    reasons = ("other label",)

    column: int = setting(..., "column of the label; 0: the first column after the two texts", ge=0)
    value: str = setting(..., "required label, compared exactly")

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        label = further_column(row, self.column, self.name)
        return None if label == self.value else "other label"


def further_column(row: Row, column: int, wanted: str) -> str:
    """Return a column after the two texts, from 0; the error names the filter that needs it."""
    if 2 + column < len(row):
        return row[2 + column]
    raise TextError(
        f"{wanted}: a row has {len(row)} columns ({short(' | '.join(row[:2]), 80)}), but column"
        f" {column} after the two texts is needed; check the columns"
    )
