"""Rows to begin with that another kind of model gives: what it makes of each piece, read as a text."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # what sentencepiece writes for a space
_FREQUENT = 1e-3  # the constant a of smooth inverse frequency, a / (a + p)


def rows_of_pieces(tokenizer: Tokenizer, model: SentenceTransformer, dim: int) -> Tensor:
    """A table for a tokenizer, float32 (V, D), of the vectors that a model gives to the pieces.

    The vectors are centered, weighted by smooth inverse frequency (Arora, Liang and Ma, ICLR 2017, "A Simple but
    Tough-to-Beat Baseline for Sentence Embeddings") and turned to their first D principal components, so that their
    means compare sentences already before the first step. Their standard deviation is 1, as that of random rows. How
    frequent a piece is follows from its place in the vocabulary, which is in order of frequency (Zipf's law).

    Args:
        tokenizer: of the table; V ids.
        model: any model.
        dim: D.

    Raises:
        SettingsError: the model's vectors have fewer components, or the vocabulary has fewer pieces than components.
    """
    pieces = {row: piece for row in range(len(tokenizer)) if (piece := tokenizer.piece(row))}
    texts = [piece.replace(_SPACE, " ").strip() or piece for piece in pieces.values()]
    vectors = model.encode(texts, show_progress_bar=False, convert_to_numpy=True).astype(np.float32)
    if dim > min(vectors.shape):
        seen = f"dim is {dim}, but there are {len(texts):,} pieces and {vectors.shape[1]} components of the model"
        raise SettingsError(f"{seen}; choose at most {min(vectors.shape)}")
    table = np.zeros((len(tokenizer), dim), np.float32)
    table[list(pieces)] = _turned(vectors, dim)
    return torch.from_numpy(table)


def _turned(vectors: NDArray[np.float32], dim: int) -> NDArray[np.float32]:
    """Vectors in order of frequency, (n, C), centered, weighted and turned to (n, dim)."""
    shares = 1 / np.arange(1, len(vectors) + 1)
    shares /= shares.sum()
    weighted = (vectors - shares @ vectors) * (_FREQUENT / (_FREQUENT + shares))[:, None]
    _, directions = np.linalg.eigh(np.cov(weighted.T))
    turned = weighted @ directions[:, ::-1][:, :dim]
    result: NDArray[np.float32] = (turned / turned.std()).astype(np.float32)
    return result
