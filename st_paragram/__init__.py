"""Efficient paraphrastic sentence embeddings as a sentence-transformers plugin."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

# Threads that wait for work should soon sleep: with GNU OpenMP's default a second busy process on the machine makes the
# many small steps of training ten times slower. Must be set before torch is imported; your own setting wins.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

if TYPE_CHECKING:
    from pathlib import Path

    from sentence_transformers import SentenceTransformer

try:
    __version__ = version("st_paragram")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__", "load"]


def load(name: str | Path, device: str | None = None, truncate_dim: int | None = None) -> SentenceTransformer:
    """Load a model directory; see `st_paragram.models.directory.load`."""
    from st_paragram.models.directory import load as load_directory  # torch is not needed to prepare data

    return load_directory(name, device, truncate_dim)
