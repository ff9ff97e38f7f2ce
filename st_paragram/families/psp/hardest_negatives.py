"""The most similar sentence that is not a translation, for each sentence of a (mega-)batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from st_paragram.core.native import kernels


class Precision(str, Enum):
    """Number types for similarities in the search for negatives.

    FLOAT32 is exact. AUTO stands for the device's fastest type: TF32 (GPUs) or BFLOAT16, which
    round the embeddings to 10 and 7 bits of fraction, or INT8, which rounds them to 6 and 7 bits in
    all, with one scale per sentence. The cosines of negatives found with INT8 were lower than those
    of the hardest negatives by 0.0001 on average, and by at most 0.007.
    """

    AUTO = "auto"
    FLOAT32 = "float32"
    TF32 = "tf32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"

    def on(self, device: torch.device) -> Precision:
        """Return this type, or for AUTO the type that it stands for on a device."""
        if self is not Precision.AUTO:
            return self
        if device.type == "cuda":
            return Precision.TF32
        if device.type != "cpu":
            return Precision.FLOAT32
        if _cpu_has("amx_tile"):
            return Precision.BFLOAT16
        if has_byte_products():
            return Precision.INT8
        return Precision.BFLOAT16 if _cpu_has("avx512_bf16") else Precision.FLOAT32


def has_byte_products() -> bool:
    """Whether INT8 can be used: with the compiled kernels, on a processor with AVX2."""
    return kernels() is not None and bool(kernels().has_byte_products())


def _cpu_has(feature: str) -> bool:
    # not public: false if missing
    return bool(getattr(torch.cpu, f"_is_{feature}_supported", bool)())


@torch.no_grad()
def hardest_negatives(
    first: Tensor,
    second: Tensor,
    texts: Sequence[Tensor] | None = None,
    both_sides: bool = False,
    block: int = 1024,
    precision: Precision = Precision.FLOAT32,
) -> tuple[Tensor, Tensor]:
    """Find each sentence's hardest negative by cosine (EMNLP 2022, equation 1 and below).

    Args:
        first: Embeddings of the sentences s, float (n, D).
        second: Embeddings of the sentences t, (n, D), row for row.
        texts: int64 labels (n,) and (n,), equal for equal texts. With labels, pairs that share a
            text are never each other's negatives: the "negative" would be the pair's own text or a
            translation of it.
        both_sides: Search the sentences of both sides (the paper's rule for paraphrases), not only
            the opposite side (its rule for bitext).
        block: Rows of the matrix product computed at a time; memory is n * D + block * n numbers.
        precision: Number type of the product.

    Returns:
        Two int64 tensors (n,): the negative of each s and of each t. Without `both_sides`, they
        index `second` and `first`; otherwise the 2n sentences `cat(first, second)`. A sentence
        without candidates gets its own partner, whose equal cosines give no gradient.
    """
    n = len(first)
    labels = first.new_empty((2, 0), dtype=torch.long)
    shares = first.new_zeros(n, dtype=torch.bool)
    if texts:
        labels = torch.stack(list(texts))
        # Pairs that share a text with another pair; only these need masking.
        _, inverse, counts = labels.unique(return_inverse=True, return_counts=True)
        own = 1 + (labels[0] == labels[1]).long()
        shares = (counts[inverse] > own).any(0)

    precision = precision.on(first.device)
    if precision is Precision.INT8:
        # One compiled pass that keeps all similarities in the processor's caches.
        negatives = torch.empty(2, n, dtype=torch.long)
        kernels().hardest_negatives(
            first.float().contiguous().numpy(),
            second.float().contiguous().numpy(),
            labels[0].numpy(),
            labels[1].numpy(),
            (shares if texts else shares[:0]).numpy().view(np.uint8),
            both_sides,
            torch.get_num_threads(),
            *negatives.numpy(),
        )
        return negatives[0], negatives[1]

    rows = F.normalize(first, dim=1, eps=1e-8)
    columns = F.normalize(second, dim=1, eps=1e-8)
    pairs = torch.arange(n, device=first.device)
    partners = pairs
    if both_sides:
        rows = torch.cat([rows, columns])
        columns = rows
        pairs = pairs.repeat(2)
        partners = torch.arange(2 * n, device=first.device).roll(n)
    if precision is Precision.BFLOAT16:
        rows = rows.bfloat16()
        columns = columns.bfloat16()

    best_of_row, best_of_column = rows.new_full((2, len(rows)), -torch.inf)
    row_argmax, column_argmax = partners.new_zeros(2, len(rows))
    for start in range(0, len(rows), block):
        stop = start + block
        # With both sides, the product is symmetric: the columns before the block were already
        # processed as rows.
        skip = start if both_sides else 0
        similarity = _product(rows[start:stop], columns[skip:], precision)
        _mask_own_pair(similarity, pairs[start:stop], skip, n)
        if texts:
            _mask_shared_texts(similarity, labels, pairs[start:stop], pairs[skip:], shares)
        _update(best_of_row[start:stop], row_argmax[start:stop], *similarity.max(1), skip)
        _update(best_of_column[skip:], column_argmax[skip:], *similarity.max(0), start)
    if both_sides:
        row_argmax = torch.where(best_of_column > best_of_row, column_argmax, row_argmax)
        best_of_row = torch.maximum(best_of_row, best_of_column)
    of_first = torch.where(best_of_row.isneginf(), partners, row_argmax)
    if both_sides:
        return of_first[:n], of_first[n:]
    of_second = torch.where(best_of_column.isneginf(), partners, column_argmax)
    return of_first, of_second


def _product(rows: Tensor, columns: Tensor, precision: Precision) -> Tensor:
    if precision is not Precision.TF32:
        return rows @ columns.T
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        return rows @ columns.T
    finally:
        torch.set_float32_matmul_precision(before)


def _mask_own_pair(similarity: Tensor, row_pairs: Tensor, skip: int, n: int) -> None:
    """Set similarities within a pair to -inf; `skip` is the block's first column."""
    for columns in (row_pairs - skip, row_pairs + n - skip):
        inside = (columns >= 0) & (columns < similarity.shape[1])
        similarity[inside.nonzero().view(-1), columns[inside]] = -torch.inf


def _mask_shared_texts(
    similarity: Tensor, labels: Tensor, row_pairs: Tensor, column_pairs: Tensor, shares: Tensor
) -> None:
    """Set similarities of pairs that share a text to -inf; `labels` are int64 (2, n)."""
    rows = shares[row_pairs].nonzero().view(-1)
    equal = torch.zeros(len(rows), len(column_pairs), dtype=torch.bool, device=similarity.device)
    for row_labels, column_labels in itertools.product(labels, labels):
        equal |= row_labels[row_pairs[rows], None] == column_labels[column_pairs][None]
    similarity[rows] = similarity[rows].masked_fill_(equal, -torch.inf)


def _update(best: Tensor, argmax: Tensor, value: Tensor, where: Tensor, shift: int) -> None:
    """Update, in place, the best values so far with larger new values; the first wins a tie."""
    torch.where(value > best, where + shift, argmax, out=argmax)
    torch.maximum(best, value, out=best)
