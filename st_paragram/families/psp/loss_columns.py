"""The columns of text that a loss takes from `MegaBatchTrainer`."""

from __future__ import annotations

from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MatryoshkaLoss,
    MegaBatchMarginLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
)
from torch import nn

from st_paragram.errors import SettingsError

#: Losses in which each sentence t and each negative of a mini-batch is a negative of all other s.
RANKING_LOSSES = (MultipleNegativesRankingLoss, CachedMultipleNegativesRankingLoss)

_COLUMNS: dict[type[nn.Module], int] = {
    MultipleNegativesRankingLoss: 3,
    CachedMultipleNegativesRankingLoss: 3,
    TripletLoss: 3,
    MegaBatchMarginLoss: 2,
}


def inner_loss(loss: nn.Module) -> nn.Module:
    """Return the loss that a `MatryoshkaLoss` computes for each dimension, or the loss itself."""
    while isinstance(loss, MatryoshkaLoss):
        loss = loss.loss
    return loss


def column_count(loss: nn.Module) -> int:
    """Return the number of columns: 2 (s, t), 3 (and the negative of s) or 4 (and that of t).

    This is the attribute `columns` of a loss. Without it, the number for losses of
    sentence-transformers is in a table, and other losses take 4.

    Raises:
        SettingsError: A loss of sentence-transformers that needs labels or other columns.
    """
    loss = inner_loss(loss)
    name = type(loss).__name__
    columns = getattr(loss, "columns", None)
    if columns is not None:
        if columns not in (2, 3, 4):
            raise SettingsError(
                f"{name}.columns is {columns!r}; set it to 2 (s, t), 3 (and the negative of s) or 4"
                " (and the negative of t)"
            )
        return int(columns)
    for kind, number in _COLUMNS.items():
        if isinstance(loss, kind):
            return number
    if type(loss).__module__.startswith("sentence_transformers."):
        names = ", ".join(kind.__name__ for kind in _COLUMNS)
        raise SettingsError(
            f"{name} needs labels or other columns than pairs and their negatives; use"
            f" MarginHardNegativeLoss, {names}, or MatryoshkaLoss with one of them"
        )
    return 4
