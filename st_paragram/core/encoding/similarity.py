"""Similarities of embeddings, under the names that sentence-transformers gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from st_paragram.core.encoding.packing import Vectors
from st_paragram.core.encoding.table import normalize
from st_paragram.errors import SettingsError

#: The names of all similarities.
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


def similarity(a: Any, b: Any, name: str = "cosine") -> Vectors:  # noqa: ANN401 - whatever becomes an array
    """Similarity of all rows of `a`, (n, D) or one (D,), with all rows of `b`, (m, D) or one (D,): float32 (n, m).

    The last two of `SIMILARITIES` are distances with a minus sign.
    """
    if name not in SIMILARITIES:
        raise SettingsError(f"unknown similarity {name!r}; choose {', '.join(SIMILARITIES)}")
    a, b = (np.atleast_2d(np.asarray(each, dtype=np.float32)) for each in (a, b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise SettingsError(f"vectors have shapes {a.shape} and {b.shape}; give rows of equal dimension")
    if name == "manhattan":
        return np.array([-np.abs(b - row).sum(axis=1) for row in a], np.float32).reshape(len(a), len(b))
    if name == "cosine":
        a, b = normalize(a.copy()), normalize(b.copy())
    products: Vectors = a @ b.T
    if name != "euclidean":
        return products
    squares = np.einsum("nd,nd->n", a, a)[:, None] + np.einsum("md,md->m", b, b)
    return -np.sqrt(np.maximum(squares - 2 * products, 0))
