"""Unit vectors of texts, and a search among texts that are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import MiningError, SettingsError, short
from st_paragram.tools.search.rows import Source, has_words, rows_of

Vectors = NDArray[np.float32]
_NOTHING = ["", "\ue000"]  # texts of which no model knows a part: no character, and one that nobody uses
_QUERIES = 32  # compared with all texts at a time


class Hit(NamedTuple):
    """A sentence that was found.

    Attributes:
        score: Its cosine with the query.
        line: Its first line in the text, from 1.
        sentence: Itself, with single spaces.
        metadata: Its fields, by name.
    """

    score: float
    line: int
    sentence: str
    metadata: dict[str, Any]


def unit_rows(vectors: Any, what: str) -> Vectors:  # noqa: ANN401 - anything that NumPy makes an array of
    """Vectors (n, D) at length 1, float32; those without a direction are refused."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    if len(bad := np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))):
        seen = f"vector {bad[0] + 1} has length {lengths.ravel()[bad[0]]:.3g}"
        raise MiningError(f"{what}: {seen}; the model is damaged or was not trained properly: use another")
    units: Vectors = rows / lengths
    return units


def embed(model: TextEncoder, texts: Sequence[str], method: str = "encode") -> tuple[Vectors, NDArray[np.bool_]]:
    """Unit vectors of the texts that a model knows something of, (m, D), and which of the n texts these are, (n,).

    Texts without any known part all have the same vector, or a vector of zeros, and would be "equal".
    """
    rows = np.asarray(getattr(model, method)([*texts, *_NOTHING], show_progress_bar=False), np.float32)
    lengths = np.linalg.norm(rows, axis=1)
    nothing = unit_rows(rows[len(texts) :][lengths[len(texts) :] > 0].reshape(-1, rows.shape[1]), "unknown texts")
    rows, lengths = rows[: len(texts)], lengths[: len(texts)]
    alike = (rows @ nothing.T > (1 - 1e-6) * lengths[:, None]).any(axis=1)
    known = (lengths != 0) & ~alike  # NaN stays, and is refused
    return unit_rows(rows[known], "sentences"), known


def embed_queries(model: TextEncoder, queries: Sequence[str], method: str = "encode") -> Vectors:
    """Unit vectors of queries, (q, D); a query without any known part is refused."""
    vectors, known = embed(model, queries, method)
    if not known.all():
        query = short(queries[int(np.argmin(known))])
        raise SettingsError(f"query {query}: the model knows no part of it; use its languages, or another model")
    return vectors


class TextSearch:
    """The distinct sentences of a text in memory, compared with every query."""

    def __init__(self, source: Source, model: TextEncoder) -> None:
        lines: dict[str, int] = {}
        for number, (text, _) in enumerate(rows_of(source, None), 1):
            lines.setdefault(text, number)
        self.model, texts = model, [text for text in lines if has_words(text)]
        self.vectors, known = embed(model, texts)
        self.sentences = [(text, lines[text]) for text, each in zip(texts, known.tolist(), strict=True) if each]

    def search(self, queries: Sequence[str], k: int = 10, threshold: float | None = None) -> list[list[Hit]]:
        """The k sentences nearest to each query, best first, of equally good ones the earlier."""
        hits = []
        vectors = embed_queries(self.model, queries)
        for begin in range(0, len(vectors), _QUERIES):
            for scores in vectors[begin : begin + _QUERIES] @ self.vectors.T:
                best = np.argsort(-scores, kind="stable")[:k].tolist()
                found = [Hit(float(scores[row]), self.sentences[row][1], self.sentences[row][0], {}) for row in best]
                hits.append([hit for hit in found if threshold is None or hit.score >= threshold])
        return hits
