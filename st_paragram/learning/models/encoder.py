"""Averaging models from their parts."""

from __future__ import annotations

from typing import Any

from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.model_files import PIPELINE_SETTINGS
from st_paragram.learning.models import averaging
from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder  # earlier pickles name it here
from st_paragram.learning.modules.token_embedding import TokenEmbedding


def pipeline(
    embedding: TokenEmbedding,
    device: str | None = None,
    normalize: bool = False,
    **settings: Any,  # noqa: ANN401
) -> ParagramEncoder:
    """An averaging model: `embedding`, then `MeanPool`, and `Normalize` if embeddings are to have length 1.

    Args:
        embedding: the first module.
        device: torch device; chosen by sentence-transformers if not given.
        normalize: scale every embedding to length 1.
        settings: further arguments of `SentenceTransformer`, e.g. `prompts`; the similarity is cosine by default.

    Example:
        >>> from st_paragram import PairStore, SentencePieceEmbedding, pipeline
        >>> model = pipeline(SentencePieceEmbedding(PairStore("data/en-es.h5").tokenizer(), 64), normalize=True)
        >>> len(model)
        3
    """
    return ParagramEncoder.of(embedding, device, normalize, **settings)


def with_unit_vectors(model: SentenceTransformer) -> SentenceTransformer:
    """An averaging model that shares all of `model`, and scales every embedding to length 1.

    Raises:
        ModelDirectoryError: another pipeline.
    """
    embedding = averaging.embedding_of(model)
    if averaging.gives_unit_vectors(model):
        return model
    settings = {name: getattr(model, name) for name in PIPELINE_SETTINGS}
    return pipeline(embedding, str(model.device), normalize=True, **settings)
