"""Initial embeddings from a trained model for the pieces that two vocabularies share."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

import st_paragram
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.learning.models.averaging import averaging_embedding

logger = logging.getLogger(__name__)

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # sentencepiece's symbol for a space
_FREQUENT = 1e-3  # the constant a of smooth inverse frequency, a / (a + p)


def initial_rows(tokenizer: Tokenizer, model: str | Path, dim: int) -> Tensor:
    """Make a table for a tokenizer of V ids, float32 (V, D): the model's rows for shared pieces,
    N(0, 1) for others.

    The model's own rows were also initialized from N(0, 1), so both kinds of rows fit together. The
    row of the unknown id is zeros. A non-averaging model with at least D dimensions has no rows;
    its embeddings of the pieces are used instead (see `rows_of_pieces`).
    """
    loaded = st_paragram.load(model, device="cpu")
    embedding = averaging_embedding(loaded)
    if embedding is None:
        logger.info(f"all pieces start with their embeddings by {model}")
        return rows_of_pieces(tokenizer, loaded, dim)
    own = embedding.embedding_dimension
    if own != dim:
        raise SettingsError(f"dim is {dim}, but {model} has {own} dimensions; set --dim {own}")
    known = {
        piece: row
        for row in range(len(embedding.tokenizer))
        if (piece := embedding.tokenizer.piece(row))
    }
    found = [
        (row, known[piece])
        for row in range(len(tokenizer))
        if (piece := tokenizer.piece(row)) and piece in known
    ]
    rows = embedding.embedding
    table = torch.randn(len(tokenizer), dim)
    if found:
        into, out_of = torch.tensor(found).T
        table[into] = rows(out_of).detach().float()
    table[list(tokenizer.unknown_ids)] = 0
    logger.info(
        f"{len(found):,} of {len(tokenizer):,} pieces start with their embeddings in {model}"
    )
    return table


def rows_of_pieces(tokenizer: Tokenizer, model: SentenceTransformer, dim: int) -> Tensor:
    """Make a table for a tokenizer, float32 (V, D), from a model's embeddings of the pieces.

    The vectors are centered, weighted by smooth inverse frequency (Arora, Liang and Ma, ICLR 2017,
    "A Simple but Tough-to-Beat Baseline for Sentence Embeddings") and projected to their first D
    principal components, so that their means are useful sentence embeddings even before training.
    Their standard deviation is 1, as for random rows. The frequency of a piece is estimated from
    its rank in the vocabulary, which is ordered by frequency (Zipf's law).
    """
    pieces = {row: piece for row in range(len(tokenizer)) if (piece := tokenizer.piece(row))}
    texts = [piece.replace(_SPACE, " ").strip() or piece for piece in pieces.values()]
    vectors = model.encode(texts, show_progress_bar=False, convert_to_numpy=True).astype(np.float32)
    if dim > min(vectors.shape):
        seen = (
            f"dim is {dim}, but there are {len(texts):,} pieces, and the model has"
            f" {vectors.shape[1]} dimensions"
        )
        raise SettingsError(f"{seen}; choose at most {min(vectors.shape)}")
    shares = 1 / np.arange(1, len(vectors) + 1)
    shares /= shares.sum()
    weighted = (vectors - shares @ vectors) * (_FREQUENT / (_FREQUENT + shares))[:, None]
    _, directions = np.linalg.eigh(np.cov(weighted.T))
    turned = weighted @ directions[:, ::-1][:, :dim]
    table = np.zeros((len(tokenizer), dim), np.float32)
    table[list(pieces)] = turned / turned.std()
    return torch.from_numpy(table)
