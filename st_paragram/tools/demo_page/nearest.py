"""The sentences of a list that are nearest to another sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.tools.alignment.scores import unit_vectors
from st_paragram.tools.demo_page.models import readers


@dataclass(frozen=True)
class Hit:
    """A sentence that was found.

    Attributes:
        line: Its place among the sentences of the list, from 1.
        sentence: What it says.
        cosine: With the sentence that was asked for.
    """

    line: int
    sentence: str
    cosine: float


def nearest(model: TextEncoder, query: str, lines: Sequence[str], most: int) -> list[Hit]:
    """The nearest sentences, best first; of equally near ones the earlier.

    Args:
        model: any; one with a vocabulary of each of two languages reads the query in the first.
        query: a sentence.
        lines: sentences, at least one.
        most: how many are wanted; a shorter list gives all.

    Raises:
        MiningError: the model gives a sentence no direction.
    """
    first, second = readers(model)
    asked = unit_vectors([query], lambda texts: first.encode(list(texts), show_progress_bar=False), "the sentence")
    given = unit_vectors(lines, lambda texts: second.encode(list(texts), show_progress_bar=False), "the list's")
    cosines = given.astype(np.float64) @ asked[0].astype(np.float64)
    order = np.argsort(-cosines.astype(np.float32), kind="stable")[:most]
    return [Hit(row + 1, lines[row], float(cosines[row])) for row in order.tolist()]
