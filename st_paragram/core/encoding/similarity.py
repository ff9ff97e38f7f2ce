"""Similarities of embeddings, under the names that sentence-transformers gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from st_paragram.core.encoding.table import Vectors, normalize
from st_paragram.errors import SettingsError


def _cosine(a: Vectors, b: Vectors) -> Vectors:
    return normalize(a.copy()) @ normalize(b.copy()).T


def _dot(a: Vectors, b: Vectors) -> Vectors:
    return a @ b.T


def _euclidean(a: Vectors, b: Vectors) -> Vectors:
    squares = np.einsum("nd,nd->n", a, a)[:, None] + np.einsum("md,md->m", b, b) - 2 * (a @ b.T)
    return -np.sqrt(np.maximum(squares, 0))


def _manhattan(a: Vectors, b: Vectors) -> Vectors:
    return -np.stack([np.abs(b - row).sum(axis=1) for row in a]) if len(a) else np.zeros((0, len(b)), np.float32)


_FUNCTIONS: dict[str, Callable[[Vectors, Vectors], Vectors]] = {
    "cosine": _cosine,
    "dot": _dot,
    "euclidean": _euclidean,
    "manhattan": _manhattan,
}
#: The names of all similarities.
SIMILARITIES = tuple(_FUNCTIONS)


def similarity(a: Any, b: Any, name: str = "cosine") -> Vectors:  # noqa: ANN401 - whatever becomes an array
    """Similarity of all rows of `a` with all rows of `b`.

    Args:
        a: (n, D), or one vector (D,).
        b: (m, D), or one vector (D,).
        name: cosine, dot, euclidean or manhattan; the last two are distances with a minus sign.

    Returns:
        float32 (n, m).

    Raises:
        SettingsError: no such similarity, or vectors of different dimensions.
    """
    if name not in _FUNCTIONS:
        raise SettingsError(f"unknown similarity {name!r}; choose {', '.join(_FUNCTIONS)}")
    a, b = (np.atleast_2d(np.asarray(each, dtype=np.float32)) for each in (a, b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise SettingsError(f"vectors have shapes {a.shape} and {b.shape}; give rows of equal dimension")
    return _FUNCTIONS[name](a, b)
