"""A model opened once in a process, for tasks that follow one another."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from st_paragram.core.encoding.models import TextEncoder, load_encoder


@lru_cache(maxsize=1)
def cached_model(path: Path, fingerprint: str, threads: int) -> TextEncoder:
    """The model in a directory.

    Args:
        path: of the directory.
        fingerprint: of the model, since a directory may come to hold another.
        threads: that encode.
    """
    return load_encoder(path, num_threads=threads)
