"""How many texts a model encodes at a time, where nobody has said."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.learning.models.averaging import averaging_embedding

#: For networks: what their layers compute of so many texts stays in a processor's cache.
OF_NETWORKS = 128


def batch_size(model: object) -> int:
    """Texts in one forward pass: many for a mean of embeddings, which only reads memory, fewer for anything else."""
    if not isinstance(model, SentenceTransformer):
        return OF_NETWORKS
    mean = averaging_embedding(model) is not None or isinstance(model[0], StaticEmbedding)
    return BATCH_SIZE if mean else getattr(model[0], "texts_at_once", OF_NETWORKS)
