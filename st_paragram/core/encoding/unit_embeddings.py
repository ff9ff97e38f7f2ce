"""Embeddings of length 1, and one rule for texts in which a model knows no token.

Such a text is empty, or has only characters that the model drops or does not know: spaces, invisible characters,
another script. It has no similarity with any text, not even with an equal text. All such texts have the same
embedding, zeros or that of the mark for a space, which says nothing about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.packing import Vectors
from st_paragram.errors import ModelDirectoryError

# Texts without a known token: no character, and a character of private use
_WITHOUT_TOKEN = ["", "\ue000"]
_ROUNDING = 1e-6  # largest difference from 1 of the cosine of equal embeddings


class UnitEmbeddings(NamedTuple):
    """Embeddings of n texts.

    Attributes:
        vectors: Vectors of length 1, or of zeros for texts without a known token, float32 (n, D).
        known: Whether the model knows a token of each text, (n,).
    """

    vectors: Vectors
    known: NDArray[np.bool_]


def unit_embeddings(
    encoder: TextEncoder,
    texts: Sequence[str],
    method: str = "encode",
    **options: Any,  # noqa: ANN401 - those of the model's method
) -> UnitEmbeddings:
    """Embed texts as vectors of length 1.

    Args:
        encoder: Model.
        texts: The n texts.
        method: Method of the model: encode, encode_query or encode_document.
        options: Further options of the method.

    Raises:
        ModelDirectoryError: An embedding has NaN or infinite values.
    """
    embeddings = _embed(encoder, texts, method, options)
    return scaled(embeddings, unknown_embeddings(encoder, method, **options))


def unknown_embeddings(encoder: TextEncoder, method: str = "encode", **options: Any) -> Vectors:  # noqa: ANN401
    """Return the embeddings, of length 1, that a model gives to texts without a known token, (u, D) with u < 3.

    There is none (u is 0) if the model gives them zeros.
    """
    embeddings = _embed(encoder, _WITHOUT_TOKEN, method, options)
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    nonzero = lengths[:, 0] > 0
    return embeddings[nonzero] / lengths[nonzero]


def scaled(embeddings: Vectors, unknown: Vectors) -> UnitEmbeddings:
    """Scale embeddings, (n, D), to length 1, and set those of texts without a known token to zero.

    `unknown` is the result of `unknown_embeddings` for the same model and method.
    """
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        number = int(np.argmin(np.isfinite(lengths[:, 0]))) + 1
        seen = f"embedding {number} of {len(embeddings)} has NaN or infinite values"
        raise ModelDirectoryError(f"{seen}; the model is damaged or was not trained properly: use another model")
    is_unknown = lengths[:, 0] == 0
    if len(unknown):
        similarities = embeddings @ unknown.T
        is_unknown |= (similarities > (1 - _ROUNDING) * lengths).any(axis=1)
    lengths[is_unknown] = 1
    vectors = embeddings / lengths
    vectors[is_unknown] = 0
    return UnitEmbeddings(vectors, ~is_unknown)


def _embed(encoder: TextEncoder, texts: Sequence[str], method: str, options: dict[str, Any]) -> Vectors:
    embed = getattr(encoder, method)
    embeddings = embed(list_of_texts(texts), show_progress_bar=False, **options)
    return np.asarray(embeddings, np.float32).reshape(len(texts), -1)
