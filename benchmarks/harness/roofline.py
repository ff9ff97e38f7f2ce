"""What a machine must at least move and compute for an encoding or a training step: formulas.

Bytes are those that cross the border between memory and processor if caches keep nothing from one sentence to the next;
real text repeats its frequent pieces, so a share of the limit above 100 % is possible.
"""

from __future__ import annotations

from dataclasses import dataclass

_FLOAT = 4  # bytes of a float32
_ID = 8  # bytes of an id or an offset


@dataclass(frozen=True)
class Work:
    """Bytes to move, operations beside them (hidden behind the bytes), operations of matrix products (not hidden)."""

    bytes: float
    operations: float
    product_operations: float = 0.0

    def least_seconds(self, bytes_per_second: float, products_per_second: float = 0.0) -> float:
        """Time on a machine of these measured rates: the bytes, then the matrix products."""
        products = self.product_operations / products_per_second if self.product_operations else 0.0
        return self.bytes / bytes_per_second + products


def encoding(sentences: int, tokens: int, dim: int, component_bytes: int = _FLOAT) -> Work:
    """From ids to vectors: each token's row is read and added, each sentence's mean is written.

    Args:
        sentences: N.
        tokens: of all sentences.
        dim: D.
        component_bytes: of the table.
    """
    rows = tokens * dim * component_bytes
    means = sentences * dim * _FLOAT
    ids = tokens * _ID + (sentences + 1) * _ID
    return Work(bytes=rows + means + ids, operations=tokens * dim + sentences * dim)


@dataclass(frozen=True)
class StepShape:
    """A training step with row-lazy Adam, mining included.

    Args:
        pairs: B, of a mini-batch.
        dim: D.
        megabatch_size: M.
        mined_tokens: tokens of the B sentences s and the B sentences t, which mining embeds.
        tokens: tokens of the 4 B sentences of the step (s, t and a negative for each).
        distinct_rows: different rows among them.
        both_sides: negatives come from both sides.
    """

    pairs: int
    dim: int
    megabatch_size: int
    mined_tokens: float
    tokens: float
    distinct_rows: float
    both_sides: bool = False


def training_step(shape: StepShape) -> Work:
    """Work of one step, a mega-batch's mining shared out over its M steps.

    Bytes: mining reads a row a token and writes 2 B means, which the product reads once; the step reads a row a token,
    and reads and writes a row of the table and of Adam's two moments for each distinct row. Matrix product: M B rows
    against M B columns once for both directions, 2 (M B)^2 D operations a mega-batch; among the 2 M B sentences of both
    sides half of a symmetric product, twice as many. Beside them: an addition a component of a token in each of mining,
    forward and backward pass; 26 a component of a pair for the cosines and their gradients; 12 a component of a
    distinct row for Adam.
    """
    rows = shape.mined_tokens + shape.tokens + 6 * shape.distinct_rows + 4 * shape.pairs
    products = 2 * shape.megabatch_size * shape.pairs**2 * shape.dim * (2 if shape.both_sides else 1)
    beside = shape.mined_tokens + 2 * shape.tokens + 26 * shape.pairs + 12 * shape.distinct_rows
    return Work(bytes=rows * shape.dim * _FLOAT, operations=beside * shape.dim, product_operations=products)
