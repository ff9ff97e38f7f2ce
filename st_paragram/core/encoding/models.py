"""Open any model by name: averaging models as an `Encoder`, other models with torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import st_paragram
from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.model_directory.configuration import AVERAGING, read_configuration
from st_paragram.core.model_directory.find import find

#: The results of a network's layers for so many texts fit in the cache.
NETWORK_BATCH_SIZE = 128
#: Names of the modules of a mean of embeddings; their classes need torch.
_OF_A_MEAN = {
    "SentencePieceEmbedding",
    "TokenEmbedding",
    "StaticEmbedding",
    "MeanPool",
    "Normalize",
}


class TextEncoder(Protocol):
    """The methods that `Encoder` and `SentenceTransformer` have in common."""

    def encode(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def encode_query(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def encode_document(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def get_embedding_dimension(self) -> int | None: ...  # noqa: D102


def load_encoder(name: str | Path, num_threads: int | None = None) -> TextEncoder:
    """Open an averaging model as an `Encoder`, any other model as a `SentenceTransformer`.

    `num_threads` limits the threads of a process that has no other work.
    """
    folder = find(name)
    if read_configuration(folder).architecture == AVERAGING:
        return Encoder(folder, num_threads=num_threads)
    model = st_paragram.load(folder)
    if num_threads is not None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(num_threads)  # those of torch, too
    return model


def has_towers(model: TextEncoder) -> bool:
    """Whether a model has different towers for questions and answers."""
    if isinstance(model, Encoder):
        return False
    modules: Any = model  # a SentenceTransformer is a sequence of modules
    for module in modules:
        routes = getattr(module, "sub_modules", ())  # of a `Router`
        if "query" in routes and "document" in routes:
            return True
    return False


def batch_size(model: TextEncoder) -> int:
    """Return how many texts a model embeds at a time: fewer for a network than for a mean."""
    if isinstance(model, Encoder):
        return BATCH_SIZE
    if not hasattr(model, "__getitem__"):  # not a sequence of modules
        return NETWORK_BATCH_SIZE
    modules: Any = model
    if {type(module).__name__ for module in modules} <= _OF_A_MEAN:
        return BATCH_SIZE
    return getattr(modules[0], "texts_at_once", NETWORK_BATCH_SIZE)
