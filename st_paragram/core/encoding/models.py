"""Open any model by name: averaging models as an `Encoder`, other models with torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.model_directory.configuration import AVERAGING, read_configuration
from st_paragram.core.model_directory.find import find


class TextEncoder(Protocol):
    """The methods that `Encoder` and `SentenceTransformer` have in common."""

    def encode(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def encode_query(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def encode_document(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def get_embedding_dimension(self) -> int | None: ...  # noqa: D102


def load_encoder(name: str | Path, num_threads: int | None = None) -> TextEncoder:
    """Open an averaging model as an `Encoder`, any other model as a `SentenceTransformer`."""
    folder = find(name)
    if read_configuration(folder).architecture == AVERAGING:
        return Encoder(folder, num_threads=num_threads)
    from st_paragram.families.loading import load_network

    return load_network(folder, num_threads)


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
    from st_paragram.learning.models import sentence_transformers_encoder

    return sentence_transformers_encoder.batch_size(model)
