"""Unit vectors of texts, and search among texts in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from numbers import Integral, Real
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import SettingsError, short
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.search.rows import Source, rows_of


class Hit(NamedTuple):
    """A search result.

    Attributes:
        score: Cosine with the query.
        line: First line of the sentence in the text, from 1.
        sentence: The sentence, with single spaces.
        metadata: Fields of the sentence, by name.
    """

    score: float
    line: int
    sentence: str
    metadata: dict[str, Any]


def embed(
    model: TextEncoder, texts: Sequence[str], method: str = "encode"
) -> tuple[Vectors, NDArray[np.bool_]]:
    """Compute unit vectors of texts with a known token, (m, D), and which of the n texts these are,
    (n,).

    A text without a known token has no similarity with any text.
    """
    vectors, known = unit_embeddings(model, texts, method)
    return vectors[known], known


def embed_queries(model: TextEncoder, queries: Sequence[str], method: str = "encode") -> Vectors:
    """Compute unit vectors of queries, (q, D); refuse a query without a known token."""
    queries = list_of_texts(queries)
    vectors, known = embed(model, queries, method)
    if not known.all():
        query = short(queries[int(np.argmin(known))])
        raise SettingsError(
            f"query {query}: the model knows no token in it; use one of its languages or another"
            " model"
        )
    return vectors


def checked_k(k: object) -> int:
    """Return a number of hits; refuse what is not a whole number of at least 1."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise SettingsError(f"k is {short(k)}; give a whole number of at least 1")
    return int(k)


def checked_number(name: str, value: object, wanted: str) -> float:
    """Return a number; refuse NaN and other values."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise SettingsError(f"{name} is {short(value)}; give {wanted}")
    return float(value)


def checked_threshold(threshold: object) -> float:
    """Return a minimum cosine, by default none."""
    return (
        -math.inf
        if threshold is None
        else checked_number("threshold", threshold, "a cosine, such as 0.5")
    )


class TextSearch:
    """The distinct sentences of a text in memory, compared with every query.

    Attributes:
        unknown: Number of distinct sentences left out, since the model knows no token of them.
    """

    def __init__(self, source: Source, model: TextEncoder) -> None:
        lines: dict[str, int] = {}
        for number, (text, _) in enumerate(rows_of(source, None), 1):
            if has_two_letters(text):
                lines.setdefault(text, number)
        self.model = model
        self.vectors, known = embed(model, list(lines))
        self.unknown = int((~known).sum())
        self.sentences = [Hit(0.0, line, text, {}) for text, line in compress(lines.items(), known)]

    @overload
    def search(  # type: ignore[overload-overlap] # a str is a sequence of str
        self, queries: str, k: int = 10, threshold: float | None = None
    ) -> list[Hit]: ...

    @overload
    def search(
        self, queries: Sequence[str], k: int = 10, threshold: float | None = None
    ) -> list[list[Hit]]: ...

    def search(
        self, queries: str | Sequence[str], k: int = 10, threshold: float | None = None
    ) -> list[Hit] | list[list[Hit]]:
        """Find the k sentences nearest to each query, or to one query, best first, ties in the
        order of lines.
        """
        if isinstance(queries, str):
            return self.search([queries], k, threshold)[0]
        k = checked_k(k)
        least = checked_threshold(threshold)
        vectors = embed_queries(self.model, queries)
        if not self.sentences:
            return [list[Hit]() for _ in queries]
        found = nearest_neighbors(vectors, self.vectors, min(k, len(self.sentences)))
        return [
            [
                self.sentences[row]._replace(score=cosine)
                for cosine, row in zip(*best, strict=True)
                if cosine >= least
            ]
            for best in zip(found.similarities.tolist(), found.indices.tolist(), strict=True)
        ]
