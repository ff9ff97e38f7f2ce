"""A filter for OpusFilter (https://github.com/Helsinki-NLP/OpusFilter), which loads it with the key `module`.

    filters:
      - CosineFilter: {model: p-sp-mini, threshold: 0.4}
        module: st_paragram.tools.opusfilter

Nothing else imports this module, because it needs OpusFilter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress, islice
from typing import Any

import numpy as np
from opusfilter import CLEAN_HIGH, FilterABC

from st_paragram.core.encoding.encoder import Encoder

_BLOCK = 10_000  # pairs


class CosineFilter(FilterABC):  # type: ignore[misc] # of a package without types
    """Score pairs by the cosine of their embeddings, -1 to 1, and keep pairs with at least `threshold`."""

    score_direction = CLEAN_HIGH
    accept_threshold = -1
    reject_threshold = 1 + 1e-6

    def __init__(self, model: str = "p-sp-mini", threshold: float = 0.4, **kwargs: Any) -> None:  # noqa: ANN401 - of the base class
        """Open a model: a name, a directory or a hub id, as for `Encoder`."""
        super().__init__(**kwargs)
        self.encoder, self.threshold = Encoder(model), threshold

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[float]:
        """Yield the cosine of each pair."""
        for block in _blocks(pairs):
            first, second = (
                self.encoder.encode(list(side), normalize_embeddings=True) for side in zip(*block, strict=True)
            )
            yield from np.einsum("nd,nd->n", first, second).tolist()

    def accept(self, score: float) -> bool:
        """Whether a pair with this cosine is kept."""
        return score >= self.threshold

    def filter(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield the kept pairs, scored in blocks, whereas the base class scores each pair alone."""
        for block in _blocks(pairs):
            yield from compress(block, self.decisions(block))


def _blocks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    rows = iter(pairs)
    while block := list(islice(rows, _BLOCK)):
        yield block
