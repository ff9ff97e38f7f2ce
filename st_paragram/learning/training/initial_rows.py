"""Initial embeddings from a trained model for the tokens that two vocabularies share."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

import st_paragram
from st_paragram.core.model_directory.model_files import check_initial_dimension
from st_paragram.core.tokenizers.base import NO_TEXT, Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.learning.models.averaging import averaging_embedding

logger = logging.getLogger(__name__)

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # sentencepiece's symbol for a space
_FREQUENT = 1e-3  # the constant a of smooth inverse frequency, a / (a + p)


def initial_rows(tokenizer: Tokenizer, model: str | Path, dim: int) -> Tensor:
    """Make a table for a tokenizer of V ids, float32 (V, D), with a model's rows of shared tokens.

    Other rows are from N(0, 1), like the initial rows of the model, so both kinds of rows fit
    together. The row of the unknown id is zeros. A non-averaging model with at least D dimensions
    has no rows; its embeddings of the pieces are used instead (see `rows_of_pieces`).
    """
    loaded = st_paragram.load(model, device="cpu")
    embedding = averaging_embedding(loaded)
    if embedding is None:
        logger.info(f"all tokens start with their embeddings by {model}")
        return rows_of_pieces(tokenizer, loaded, dim)
    model_dim = embedding.embedding_dimension
    check_initial_dimension(dim, model=model, model_dim=model_dim)
    model_rows = {piece: row for row, piece in _pieces(embedding.tokenizer).items()}
    shared = {}
    for row, piece in _pieces(tokenizer).items():
        if piece in model_rows:
            shared[row] = model_rows[piece]
    table = torch.randn(len(tokenizer), dim)
    rows = torch.tensor(list(shared.values()), dtype=torch.long)
    table[list(shared)] = embedding.embedding(rows).detach().float()
    table[list(tokenizer.unknown_ids)] = 0
    logger.info(
        f"{len(shared):,} of {len(tokenizer):,} tokens start with their embeddings in {model}"
    )
    return table


def _pieces(tokenizer: Tokenizer) -> dict[int, str]:
    """Return the tokens of a vocabulary by their ids, without control symbols."""
    pieces = {row: tokenizer.piece(row) for row in range(len(tokenizer))}
    return {row: piece for row, piece in pieces.items() if piece}


def rows_of_pieces(tokenizer: Tokenizer, model: SentenceTransformer, dim: int) -> Tensor:
    """Make a table for a tokenizer, float32 (V, D), from a model's embeddings of the tokens.

    The vectors are centered, weighted by smooth inverse frequency (Arora, Liang and Ma, ICLR 2017,
    "A Simple but Tough-to-Beat Baseline for Sentence Embeddings") and projected to their first D
    principal components, so that their means are useful sentence embeddings even before training.
    Their standard deviation is 1, as for the rows of pieces that the model does not know, which are
    from N(0, 1). The frequency of a piece is estimated from
    its rank in the vocabulary, which is ordered by frequency (Zipf's law).
    """
    pieces = _pieces(tokenizer)
    named = {}
    for row, piece in pieces.items():
        named[row] = piece.replace(_SPACE, " ").strip() or piece
    known = _known(named, model.tokenizer)
    texts = list(known.values())
    vectors = model.encode(texts, show_progress_bar=False, convert_to_numpy=True).astype(np.float32)
    largest = min(vectors.shape)
    if dim > largest:
        raise SettingsError(
            f"dim is {dim}, but there are {len(texts):,} tokens, and the model has"
            f" {vectors.shape[1]} dimensions; choose at most {largest}"
        )
    shares = 1 / np.arange(1, len(vectors) + 1)
    shares /= shares.sum()
    weights = _FREQUENT / (_FREQUENT + shares)
    weighted = (vectors - shares @ vectors) * weights[:, None]
    _, directions = np.linalg.eigh(np.cov(weighted.T))
    components = (weighted @ directions[:, ::-1][:, :dim]).astype(np.float32)
    table = torch.zeros(len(tokenizer), dim)
    unknown = list(pieces.keys() - known.keys())
    table[unknown] = torch.randn(len(unknown), dim)
    table[list(known)] = torch.from_numpy(components / components.std())
    return table


def _known(texts: dict[int, str], tokenizer: object) -> dict[int, str]:
    """Return the texts with a token that the tokenizer of this package knows; with others, all."""
    if not isinstance(tokenizer, Tokenizer):
        return texts
    ids, offsets = tokenizer.encode(list(texts.values()))
    kinds = np.maximum.reduceat(tokenizer.kinds_of(ids), offsets[:-1])
    rows = np.array(list(texts))[kinds > NO_TEXT]
    return {row: texts[row] for row in rows.tolist()}
