"""Efficient paraphrastic sentence embeddings as a sentence-transformers plugin."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from sentence_transformers import SentenceTransformer

try:
    __version__ = version("st_paragram")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__", "load"]


def load(name: str | Path, device: str | None = None) -> SentenceTransformer:
    """Load a model directory as the native pipeline; see `st_paragram.model_directory.load`."""
    from st_paragram.model_directory import load as load_directory  # torch is not needed to prepare data

    return load_directory(name, device)
