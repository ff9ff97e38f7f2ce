"""The most similar sentence that is no translation, for every sentence of a batch or mega-batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


@torch.no_grad()
def hardest_negatives(
    first: Tensor,
    second: Tensor,
    texts: tuple[Tensor, Tensor] | None = None,
    both_sides: bool = False,
    block: int = 1024,
) -> tuple[Tensor, Tensor]:
    """Find each sentence's hardest negative by cosine (EMNLP 2022, equation 1 and below).

    Both directions come from one matrix product, made block by block: memory is n * D + block * n numbers.

    Args:
        first: embeddings of the sentences s, float (n, D); row i is paired with row i of `second`.
        second: embeddings of the sentences t, float (n, D).
        texts: int64 labels (n,) and (n,), equal where two texts are equal. With them, pairs that share a text are
            never each other's negatives: such a "negative" is the pair's own text, or a translation of it.
        both_sides: look among the sentences of both sides (the paper's rule for paraphrases), not only among those of
            the opposite side (its rule for bitext).
        block: rows of the product that exist at a time.

    Returns:
        Two int64 tensors (n,): the negative of each s and of each t. Without `both_sides` they index `second` and
        `first`; with it, the 2n sentences `cat(first, second)`. A sentence without any candidate gets its own
        partner, a pair of equal cosines that gives no gradient.
    """
    n = len(first)
    rows = F.normalize(first, dim=1, eps=1e-8)
    columns = F.normalize(second, dim=1, eps=1e-8)
    pairs = torch.arange(n, device=first.device)
    partner_of_row = partner_of_column = pairs
    if both_sides:
        rows = columns = torch.cat([rows, columns])
        pairs = pairs.repeat(2)
        partner_of_row = partner_of_column = torch.arange(2 * n, device=first.device).roll(n)
    shares_text = _TextSharing(*texts) if texts else None

    best_of_row, row_argmax = _nothing(len(rows), first)
    best_of_column, column_argmax = _nothing(len(columns), first)
    for start in range(0, len(rows), block):
        # With both sides the product is symmetric: the columns before the block were seen as rows.
        skip = start if both_sides else 0
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
