"""A model loaded once in a process, for tasks that follow one another."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@lru_cache(maxsize=1)
def cached_model(path: Path, fingerprint: str, threads: int) -> SentenceTransformer:
    """The pipeline of a model directory.

    Args:
        path: of the directory.
        fingerprint: of the model, since a directory may come to hold another.
        threads: for torch in this process.
    """
    import torch

    from st_paragram.models import directory as model_directory

    torch.set_num_threads(threads)
    return model_directory.load(path)
