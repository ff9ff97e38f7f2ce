"""Search among the sentences of a text in memory, and what it shares with search in an index."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def embed_queries(model: TextEncoder, queries: Sequence[str], method: str = "encode") -> Vectors:
    """Compute unit vectors of queries, (q, D); refuse a query without a known token."""
    queries = list_of_texts(queries)
    vectors, known = unit_embeddings(model, queries, method)
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
    if threshold is None:
        return -math.inf
    return checked_number("threshold", threshold, "a cosine, such as 0.5")


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
        vectors, known = unit_embeddings(model, list(lines))
        self.model = model
        self.vectors = vectors[known]
        self.unknown: int = int((~known).sum())
        self.sentences: list[Hit] = []
        for (text, line), is_known in zip(lines.items(), known, strict=True):
            if is_known:
                self.sentences.append(Hit(0.0, line, text, {}))

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
        """Find the k sentences nearest to each query, best first, ties in the order of lines."""
        if isinstance(queries, str):
            return self.search([queries], k, threshold)[0]
        k = checked_k(k)
        minimum = checked_threshold(threshold)
        vectors = embed_queries(self.model, queries)
        if not self.sentences:
            return [list[Hit]() for _ in queries]
        neighbors = nearest_neighbors(vectors, self.vectors, min(k, len(self.sentences)))
        return [
            self._hits(cosines, rows, minimum)
            for cosines, rows in zip(neighbors.similarities, neighbors.indices, strict=True)
        ]

    def _hits(self, cosines: Vectors, rows: NDArray[np.int64], minimum: float) -> list[Hit]:
        hits = []
        for cosine, row in zip(cosines.tolist(), rows.tolist(), strict=True):
            if cosine >= minimum:
                hits.append(self.sentences[row]._replace(score=cosine))
        return hits
