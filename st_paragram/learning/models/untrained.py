"""Models with random weights: what an architecture knows without training."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer

from st_paragram.core.families import entry_named
from st_paragram.learning.models.averaging import embedding_of
from st_paragram.learning.models.directory import load
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import token_embedding


def random_model(like: SentenceTransformer | str, dim: int | None = None, seed: int = 0) -> SentenceTransformer:
    """A model of the same architecture and tokenizer as another, with random weights.

    Args:
        like: an averaging or a recurrent model of ours, or its name.
        dim: components of a token's embedding; None: as many as `like` has.
        seed: seed of the weights.

    Raises:
        ModelDirectoryError: `like` is neither, or cannot be read.
    """
    like = load(like) if isinstance(like, str) else like
    recurrent = entry_named("sp").module("directory")
    modules = recurrent.recurrent_modules(like)
    embedding = embedding_of(like) if modules is None else modules[0]
    torch.manual_seed(seed)
    table = token_embedding(embedding.tokenizer, dim or embedding.embedding_dimension)
    if modules is None:
        return pipeline(table)
    model: SentenceTransformer = recurrent.recurrent_pipeline(table, modules[1].hidden_dim)
    return model
