"""The random generators in a checkpoint: states as plain numbers and tensors, for which nothing is unpickled."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

_PYTHONS_VERSION = 3
_PARTS = "words", "place", "normal"  # of the Mersenne Twister, which Python and numpy have


def save(path: Path) -> None:
    """Write the states of Python's, numpy's and torch's generators, that of the GPU included."""
    _, (*words, place), normal = random.getstate()
    state: dict[str, Any] = {"python": _mersenne_twister(words, place, normal), "cpu": torch.random.get_rng_state()}
    numpys: Any = np.random.get_state()
    _, numpys_words, place, has_normal, normal = numpys
    state["numpy"] = _mersenne_twister(numpys_words.tolist(), place, normal if has_normal else None)
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.random.get_rng_state()
    torch.save(state, path)


def load(path: Path) -> None:
    """Set the generators as `save` found them.

    Raises:
        Exception: anything, where the file holds something else.
    """
    state = torch.load(path, map_location="cpu", weights_only=True)
    words, place, normal = (state["python"][name] for name in _PARTS)
    random.setstate((_PYTHONS_VERSION, (*words.tolist(), place), normal))
    words, place, normal = (state["numpy"][name] for name in _PARTS)
    if not 0 <= place <= len(words):  # numpy would read beyond the words
        raise ValueError(f"a Mersenne Twister at {place} of {len(words)} words")
    np.random.set_state(("MT19937", words.numpy().astype(np.uint32), place, int(normal is not None), normal or 0.0))
    torch.random.set_rng_state(state["cpu"])
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.random.set_rng_state(state["cuda"])


def _mersenne_twister(words: list[int], place: int, normal: float | None) -> dict[str, Any]:
    return {"words": torch.tensor(words, dtype=torch.int64), "place": place, "normal": normal}
