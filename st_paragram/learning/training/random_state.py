"""The random generators in a checkpoint: states as plain numbers and tensors, for which nothing is unpickled."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

_PYTHONS_VERSION = 3
_WORDS = 624  # of the Mersenne Twister, which Python and numpy have


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
    words, place, normal = _checked(**state["python"])
    random.setstate((_PYTHONS_VERSION, (*words, place), normal))
    words, place, normal = _checked(**state["numpy"])
    np.random.set_state(("MT19937", np.array(words, np.uint32), place, int(normal is not None), normal or 0.0))
    torch.random.set_rng_state(state["cpu"])
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.random.set_rng_state(state["cuda"])


def _mersenne_twister(words: list[int], place: int, normal: float | None) -> dict[str, Any]:
    return {"words": torch.tensor(words, dtype=torch.int64), "place": place, "normal": normal}


def _checked(words: torch.Tensor, place: int, normal: float | None) -> tuple[list[int], int, float | None]:
    """A state in its range: numpy believes the place, and would read beyond the words."""
    if words.dtype != torch.int64 or words.shape != (_WORDS,) or not 0 <= words.min() <= words.max() < 2**32:
        raise ValueError("not the words of a Mersenne Twister")
    if type(place) is not int or not 0 <= place <= _WORDS:
        raise ValueError(f"a Mersenne Twister at {place!r} of {_WORDS} words")
    if normal is not None and not (type(normal) is float and math.isfinite(normal)):
        raise ValueError(f"{normal!r} as a number drawn from N(0, 1)")
    return words.tolist(), place, normal
