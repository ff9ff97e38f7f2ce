"""How much each part of a sentence contributes to its cosine with another sentence.

The embedding of an averaging model is the mean u = (x_1 + ... + x_n) / n of the vectors of its pieces. So its cosine
with another embedding v is a sum over pieces,

    cos(u, v) = u . v / (|u| |v|) = sum_i c_i    with    c_i = x_i . v / (n |u| |v|),

and c_i is what piece i contributes: exactly, and below zero if it draws the sentences apart. In other models pieces
depend on each other and nothing of the kind holds; there the contribution of a word is by how much the cosine falls
when it is left out, and these differences have no sum that means anything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import EvaluationError

Floats = NDArray[np.float64]


def cosine(first: Floats, second: Floats) -> float:
    """The cosine of two vectors, (D,) each.

    Raises:
        EvaluationError: one has no direction.
    """
    return float(first @ second / (_length(first) * _length(second)))


def piece_contributions(pieces: Floats, other: Floats) -> Floats:
    """What each piece contributes to the cosine of the mean of all pieces with another vector.

    Args:
        pieces: (n, D), n at least 1.
        other: (D,).

    Returns:
        (n,); their sum is the cosine.

    Raises:
        EvaluationError: the mean of the pieces or the other vector has no direction.
    """
    mean = pieces.mean(axis=0)
    found: Floats = pieces @ other / (len(pieces) * _length(mean) * _length(other))
    return found


def left_out_contributions(whole: Floats, without: Floats, other: Floats) -> Floats:
    """By how much the cosine of a sentence with another falls when each of its words is left out.

    Args:
        whole: (D,), the sentence.
        without: (n, D), the sentence without each of its n words; a row of zeros is a text of nothing, whose cosine
            counts as 0.
        other: (D,), the other sentence.

    Returns:
        (n,); a number below 0 is of a word without which the sentences are more alike.

    Raises:
        EvaluationError: the sentence or the other has no direction.
    """
    lengths = np.linalg.norm(without, axis=1)
    products = without @ other
    rest = np.divide(products, lengths * _length(other), out=np.zeros_like(products), where=lengths > 0)
    return cosine(whole, other) - rest


def _length(vector: Floats) -> float:
    length = float(np.linalg.norm(vector))
    if not (np.isfinite(length) and length > 0):
        raise EvaluationError("The model gives a sentence no direction. Please try another sentence or another model.")
    return length
