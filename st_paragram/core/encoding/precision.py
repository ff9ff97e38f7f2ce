"""Embeddings in fewer bytes, as `encode(..., precision=...)` of sentence-transformers gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.table import Vectors
from st_paragram.errors import SettingsError

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
_STEPS = 255


def quantize(vectors: Vectors, precision: str) -> NDArray[Any]:
    """Round embeddings; the formulas are those of `sentence_transformers.util.quantize_embeddings`.

    Args:
        vectors: float32 (n, D).
        precision: one of `PRECISIONS`. For int8 and uint8, each component's range in these vectors is cut into 255
            steps, so that vectors of different calls cannot be compared; binary and ubinary keep one bit of each
            component, whether it is above 0.

    Returns:
        (n, D) of this type; int8 or uint8 (n, ceil(D / 8)) for binary and ubinary.

    Raises:
        SettingsError: no such precision, or a range is to be found in a single vector.
    """
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8)
    if precision not in PRECISIONS:
        raise SettingsError(f"no precision {precision!r}; choose {', '.join(PRECISIONS)}")
    if len(vectors) == 1:
        raise SettingsError(f"precision {precision} takes the range of each component from the texts; give several")
    if not len(vectors):
        return np.zeros(vectors.shape, dtype=precision)
    begin = vectors.min(axis=0)
    step = (vectors.max(axis=0) - begin) / _STEPS
    step = np.where(step == 0, 1, step)
    values = np.clip(np.floor((vectors - begin) / step), 0, _STEPS)
    return values.astype(np.uint8) if precision == "uint8" else (values - 128).astype(np.int8)
