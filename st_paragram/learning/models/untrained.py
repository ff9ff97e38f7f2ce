"""Models with random weights: what an architecture knows without training."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer

from st_paragram.learning.models.averaging import embedding_of
from st_paragram.learning.models.directory import load
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding


def random_model(like: SentenceTransformer | str, dim: int | None = None, seed: int = 0) -> SentenceTransformer:
    """A model with the tokenizer of an averaging model and random weights, of `dim` components or as many as it has."""
    embedding = embedding_of(load(like) if isinstance(like, str) else like)
    torch.manual_seed(seed)
    return pipeline(token_embedding(embedding.tokenizer, dim or embedding.embedding_dimension))
