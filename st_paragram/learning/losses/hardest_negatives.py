"""The most similar sentence that is not a translation, for every sentence of a batch or mega-batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import Enum

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from st_paragram.core.native import kernels, obstacle
from st_paragram.errors import SettingsError


class Precision(str, Enum):
    """What similarities are computed in while negatives are sought; losses are always float32.

    FLOAT32 is exact. TF32 (GPUs) and BFLOAT16 round the embeddings to 10 and 7 bits of fraction; INT8 rounds them to 6
    and 7 bits in all, with one scale for each sentence. The negatives found with INT8 were less similar than the
    hardest ones by 0.0001 of cosine on average, and by 0.007 at most.
    """

    AUTO = "auto"
    FLOAT32 = "float32"
    TF32 = "tf32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"

    def on(self, device: torch.device) -> Precision:
        """The precision itself; for AUTO the fastest that the device has.

        Raises:
            SettingsError: INT8 where it cannot be computed.
        """
        if self is Precision.INT8 and not (device.type == "cpu" and has_byte_products()):
            seen = obstacle() or "this machine has other instructions"
            raise SettingsError(
                f"int8 needs the compiled kernels and a CPU with AVX2 ({seen}); choose auto or another precision"
            )
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
    """Whether INT8 can be used here: the compiled kernels are installed and the processor has AVX2."""
    native = kernels()
    return native is not None and bool(native.has_byte_products())


def _cpu_has(feature: str) -> bool:
    """Ask torch, by functions that are not public; where they are missing, the answer is no."""
    return bool(getattr(torch.cpu, f"_is_{feature}_supported", bool)())


@torch.no_grad()
def hardest_negatives(
    first: Tensor,
    second: Tensor,
    texts: tuple[Tensor, Tensor] | None = None,
    both_sides: bool = False,
    block: int = 1024,
    precision: Precision = Precision.FLOAT32,
) -> tuple[Tensor, Tensor]:
    """Find each sentence's hardest negative by cosine (EMNLP 2022, equation 1 and below).

    Both directions come from one matrix product, made block by block: memory is n * D + block * n numbers.

    Args:
        first: embeddings of the sentences s, float (n, D); row i is paired with row i of `second`.
        second: embeddings of the sentences t, float (n, D).
        texts: int64 labels (n,) and (n,), equal where two texts are equal. With them, pairs that share a text are
            never each other's negatives: such a "negative" would be the pair's own text, or a translation of it.
        both_sides: look among the sentences of both sides (the paper's rule for paraphrases), not only among those of
            the opposite side (its rule for bitext).
        block: rows of the product that exist at a time.
        precision: of the product.

    Returns:
        Two int64 tensors (n,): the negative of each s and of each t. Without `both_sides` they index `second` and
        `first`; with it, the 2n sentences `cat(first, second)`. A sentence without any candidate gets its own
        partner, a pair of equal cosines that gives no gradient.
    """
    precision = precision.on(first.device)
    shares_text = _TextSharing(*texts) if texts else None
    if precision is Precision.INT8:
        return _byte_search(first, second, shares_text, both_sides)
    n = len(first)
    rows = F.normalize(first, dim=1, eps=1e-8)
    columns = F.normalize(second, dim=1, eps=1e-8)
    pairs = torch.arange(n, device=first.device)
    partner_of_row = partner_of_column = pairs
    if both_sides:
        rows = columns = torch.cat([rows, columns])
        pairs = pairs.repeat(2)
        partner_of_row = partner_of_column = torch.arange(2 * n, device=first.device).roll(n)
    if precision is Precision.BFLOAT16:
        rows, columns = rows.bfloat16(), columns.bfloat16()

    best_of_row, row_argmax = _nothing(len(rows), rows)
    best_of_column, column_argmax = _nothing(len(columns), rows)
    for start in range(0, len(rows), block):
        # With both sides the product is symmetric: the columns before the block were seen as rows.
        skip = start if both_sides else 0
        with _tensor_float() if precision is Precision.TF32 else nullcontext():
            similarity = rows[start : start + block] @ columns[skip:].T
        _mask_own_pair(similarity, pairs[start : start + block], skip, n)
        if shares_text:
            shares_text.mask(similarity, pairs[start : start + block], pairs[skip:])
        stop = start + len(similarity)
        _update(best_of_row[start:stop], row_argmax[start:stop], *similarity.max(1), skip)
        _update(best_of_column[skip:], column_argmax[skip:], *similarity.max(0), start)
    if both_sides:
        better = best_of_column > best_of_row
        row_argmax = torch.where(better, column_argmax, row_argmax)
        best_of_row = torch.maximum(best_of_row, best_of_column)
        found = torch.where(best_of_row.isneginf(), partner_of_row, row_argmax)
        return found[:n], found[n:]
    return (
        torch.where(best_of_row.isneginf(), partner_of_row, row_argmax),
        torch.where(best_of_column.isneginf(), partner_of_column, column_argmax),
    )


def _byte_search(
    first: Tensor, second: Tensor, shares_text: _TextSharing | None, both_sides: bool
) -> tuple[Tensor, Tensor]:
    """The search in INT8: one compiled pass in which no similarity leaves the processor's caches."""
    none = np.empty(0, dtype=np.int64)
    labels, shares = (none, none), np.empty(0, dtype=np.uint8)
    if shares_text:
        labels = (shares_text.labels[0].numpy(), shares_text.labels[1].numpy())
        shares = shares_text.shares.numpy().view(np.uint8)
    vectors = [side.float().contiguous().numpy() for side in (first, second)]
    found = np.empty((2, len(first)), dtype=np.int64)
    kernels().hardest_negatives(*vectors, *labels, shares, both_sides, torch.get_num_threads(), *found)
    of_first, of_second = torch.from_numpy(found)
    return of_first, of_second


@contextmanager
def _tensor_float() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class _TextSharing:
    """Which pairs share a text; only the pairs that share one with anybody cost anything."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        self.labels = torch.stack([first, second])
        same = first == second  # one text on both sides of a pair is not sharing
        everything = torch.cat([first, second[~same]])
        _, inverse, counts = everything.unique(return_inverse=True, return_counts=True)
        repeated = counts[inverse] > 1
        self.shares = repeated[: len(first)].clone()
        self.shares[~same] |= repeated[len(first) :]

    def mask(self, similarity: Tensor, row_pairs: Tensor, column_pairs: Tensor) -> None:
        rows = self.shares[row_pairs].nonzero().view(-1)
        if len(rows) == 0:
            return
        equal = torch.zeros(len(rows), len(column_pairs), dtype=torch.bool, device=similarity.device)
        for row_labels in self.labels:
            for column_labels in self.labels:
                equal |= row_labels[row_pairs[rows], None] == column_labels[column_pairs][None]
        similarity[rows] = similarity[rows].masked_fill_(equal, -torch.inf)


def _mask_own_pair(similarity: Tensor, row_pairs: Tensor, skip: int, n: int) -> None:
    """Set to -inf where row and column belong to one pair; column c of the block is column c + skip of all."""
    width = similarity.shape[1]
    for columns in (row_pairs - skip, row_pairs + n - skip):
        inside = (columns >= 0) & (columns < width)
        similarity[inside.nonzero().view(-1), columns[inside]] = -torch.inf


def _nothing(count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    best = torch.full((count,), -torch.inf, device=like.device, dtype=like.dtype)
    return best, torch.zeros(count, dtype=torch.long, device=like.device)


def _update(best: Tensor, argmax: Tensor, value: Tensor, where: Tensor, shift: int) -> None:
    """Keep, in place, the larger of the best so far and the new values; the first found wins a tie."""
    better = value > best
    torch.where(better, where + shift, argmax, out=argmax)
    torch.maximum(best, value, out=best)
