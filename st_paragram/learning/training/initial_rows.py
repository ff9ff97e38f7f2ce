"""Rows to begin with that a trained model has: what two vocabularies share need not be learned again."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.averaging import averaging_embedding

logger = logging.getLogger(__name__)

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # what sentencepiece writes for a space
_FREQUENT = 1e-3  # the constant a of smooth inverse frequency, a / (a + p)


def initial_rows(tokenizer: Tokenizer, model: str | Path, dim: int) -> Tensor:
    """A table for a tokenizer of V ids, float32 (V, D): the model's row where it has the same piece, N(0, 1) elsewhere.

    N(0, 1) is what the model's own rows began with, so rows of both kinds fit together. The row of the unknown id is
    the model's. A model that does not average, of D components or more, has no rows; what it makes of each piece takes
    their place (see `rows_of_pieces`).
    """
    loaded = model_directory.load(model, device="cpu")
    embedding = averaging_embedding(loaded)
    if embedding is None:
        logger.info(f"all pieces begin with their embeddings by {model}")
        return rows_of_pieces(tokenizer, loaded, dim)
    own = embedding.embedding_dimension
    if own != dim:
        raise SettingsError(f"dim is {dim}, but {model} has {own} components; set --dim {own}")
    known = {piece: row for row in range(len(embedding.tokenizer)) if (piece := embedding.tokenizer.piece(row))}
    found = [(row, known[piece]) for row in range(len(tokenizer)) if (piece := tokenizer.piece(row)) and piece in known]
    found.append((tokenizer.unknown_id, embedding.tokenizer.unknown_id))
    rows = embedding.embedding
    table = torch.randn(len(tokenizer), dim)
    into, out_of = torch.tensor(found).T
    table[into] = rows(out_of).detach().float()
    logger.info(f"{len(found) - 1:,} of {len(tokenizer):,} pieces begin as they are in {model}")
    return table


def rows_of_pieces(tokenizer: Tokenizer, model: SentenceTransformer, dim: int) -> Tensor:
    """A table for a tokenizer, float32 (V, D), of the vectors that a model gives to the pieces.

    The vectors are centered, weighted by smooth inverse frequency (Arora, Liang and Ma, ICLR 2017, "A Simple but
    Tough-to-Beat Baseline for Sentence Embeddings") and turned to their first D principal components, so that their
    means compare sentences already before the first step. Their standard deviation is 1, as that of random rows. How
    frequent a piece is follows from its place in the vocabulary, which is in order of frequency (Zipf's law).
    """
    pieces = {row: piece for row in range(len(tokenizer)) if (piece := tokenizer.piece(row))}
    texts = [piece.replace(_SPACE, " ").strip() or piece for piece in pieces.values()]
    vectors = model.encode(texts, show_progress_bar=False, convert_to_numpy=True).astype(np.float32)
    if dim > min(vectors.shape):
        seen = f"dim is {dim}, but there are {len(texts):,} pieces and {vectors.shape[1]} components of the model"
        raise SettingsError(f"{seen}; choose at most {min(vectors.shape)}")
    shares = 1 / np.arange(1, len(vectors) + 1)
    shares /= shares.sum()
    weighted = (vectors - shares @ vectors) * (_FREQUENT / (_FREQUENT + shares))[:, None]
    _, directions = np.linalg.eigh(np.cov(weighted.T))
    turned = weighted @ directions[:, ::-1][:, :dim]
    table = np.zeros((len(tokenizer), dim), np.float32)
    table[list(pieces)] = turned / turned.std()
    return torch.from_numpy(table)
