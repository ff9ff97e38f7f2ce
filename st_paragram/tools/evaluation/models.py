"""The models that are scored, one in memory at a time: models of ours, any SentenceTransformer, random embeddings.

What needs torch is imported by its name, and only for models that need it.
"""

from __future__ import annotations

import gc
import importlib
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.models import TextEncoder, load_encoder

UNTRAINED = "untrained"

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_UNTRAINED = "st_paragram.learning.models.untrained"


def random_model(name: str) -> TextEncoder:
    """A model of the architecture and with the tokenizer of another one, and with random weights (seed 0)."""
    model: TextEncoder = importlib.import_module(_UNTRAINED).random_model(name)
    return model


def find_models(names: Sequence[str]) -> None:
    """Look for models without loading them; one of the hub is fetched.

    Raises:
        ModelDirectoryError: a model is not there; the message says where it was looked for.
    """
    for name in dict.fromkeys(names):
        find(name)


def score_each(names: Sequence[str], score: Callable[[TextEncoder], _Result], untrained: bool) -> dict[str, _Result]:
    """Score one model after the other; at most one is in memory.

    Args:
        names: of the models; all are looked for first.
        score: of one model.
        untrained: add random embeddings over the first model's vocabulary, as the last of the results.

    Raises:
        ModelDirectoryError: a model is not there or cannot be read.
    """
    find_models(names)
    random: dict[str, _Result] = {}
    if untrained:
        random[UNTRAINED] = score(random_model(names[0]))
        gc.collect()  # pipelines refer to themselves
    found: dict[str, _Result] = {}
    for name in dict.fromkeys(names):
        logger.info(f"{name}: scoring")
        found[name] = score(load_encoder(name))
        gc.collect()
    return found | random
