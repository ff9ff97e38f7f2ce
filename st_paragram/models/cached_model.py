"""A model loaded once in a process, for tasks that follow one another."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from st_paragram.models.encoder import ParagramEncoder


@lru_cache(maxsize=1)
def cached_model(path: Path, fingerprint: str, threads: int) -> ParagramEncoder:
    """The native pipeline of a model directory.

    Args:
        path: Of the directory.
        fingerprint: Of the model: a directory may come to hold another.
        threads: For torch in this process.
    """
    import torch

    from st_paragram.models import directory as model_directory

    torch.set_num_threads(threads)
    return model_directory.load(path)
