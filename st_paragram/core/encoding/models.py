"""Any model by its name: averaging models as an `Encoder`, others through the package that needs torch for them."""

from __future__ import annotations

import importlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from st_paragram.core.encoding.configuration import AVERAGING, read_configuration
from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import find

# Imported by name, and only for models that need torch.
_DIRECTORY = "st_paragram.learning.models.directory"
_BATCH_SIZE = "st_paragram.learning.models.batch_size"


class TextEncoder(Protocol):
    """What an `Encoder` and a `SentenceTransformer` have in common."""

    def encode(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Embed texts."""

    def encode_query(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Embed questions."""

    def encode_document(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Embed what is searched."""

    def get_embedding_dimension(self) -> int | None:
        """Components of an embedding."""


def load_encoder(name: str | Path, num_threads: int | None = None) -> TextEncoder:
    """Open a model for encoding.

    Args:
        name: as of `Encoder`.
        num_threads: threads that encode; all cores if None.

    Returns:
        An `Encoder` for an averaging model, a `SentenceTransformer` for any other.

    Raises:
        ModelDirectoryError: not found, or damaged.
    """
    folder = find(name)
    if read_configuration(folder).architecture == AVERAGING:
        return Encoder(folder, num_threads=num_threads)
    if num_threads is not None:
        importlib.import_module("torch").set_num_threads(num_threads)
    model: TextEncoder = importlib.import_module(_DIRECTORY).load(folder)
    return model


def batch_size(model: TextEncoder) -> int:
    """Texts that a model embeds at a time: many for a mean of embeddings, fewer for a network."""
    if isinstance(model, Encoder):
        return BATCH_SIZE
    return int(importlib.import_module(_BATCH_SIZE).batch_size(model))


@lru_cache(maxsize=1)
def cached_model(path: Path, fingerprint: str, threads: int) -> TextEncoder:
    """The model in a directory.

    Args:
        path: of the directory.
        fingerprint: of the model, since a directory may come to hold another.
        threads: that encode.
    """
    return load_encoder(path, num_threads=threads)
