"""Open any model by name: averaging models as an `Encoder`, other models with torch."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Protocol, cast

from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.model_directory.configuration import AVERAGING, read_configuration
from st_paragram.core.model_directory.find import find

_MODELS = "st_paragram.learning.models"  # imported only for models that need torch


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
    if num_threads is not None:
        importlib.import_module("torch").set_num_threads(num_threads)
    return cast("TextEncoder", importlib.import_module(f"{_MODELS}.load_save").load(folder))


def has_towers(model: TextEncoder) -> bool:
    """Whether a model embeds questions and answers differently: its `Router` has routes "query" and
    "document".
    """
    # a SentenceTransformer is a sequence of modules
    modules: Any = () if isinstance(model, Encoder) else model
    return any(
        set(getattr(module, "sub_modules", ())) >= {"query", "document"} for module in modules
    )


def batch_size(model: TextEncoder) -> int:
    """Return how many texts a model embeds at a time: many for a mean of embeddings, fewer for a
    network.
    """
    if isinstance(model, Encoder):
        return BATCH_SIZE
    return int(
        importlib.import_module(f"{_MODELS}.sentence_transformers_encoder").batch_size(model)
    )
