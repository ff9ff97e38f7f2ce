"""Rows to begin with that a trained model has: what two vocabularies share need not be learned again."""

from __future__ import annotations

import logging
from pathlib import Path

import torch
from torch import Tensor

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.training.rows_of_pieces import rows_of_pieces

logger = logging.getLogger(__name__)


def initial_rows(tokenizer: Tokenizer, model: str | Path, dim: int) -> Tensor:
    """A table for a tokenizer, float32 (V, D): the model's row where it has the same piece, N(0, 1) elsewhere.

    N(0, 1) is what the model's own rows began with, so rows of both kinds fit together. The row of the unknown id is
    the model's. A model that does not average has no rows; what it makes of each piece takes their place (see
    `rows_of_pieces`).

    Args:
        tokenizer: of the new table; V ids.
        model: as `load` takes it.
        dim: D, the components of an embedding; an averaging model must have as many, and another one no fewer.

    Raises:
        SettingsError: the model has another number of components.
        ModelDirectoryError: no such model.
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
