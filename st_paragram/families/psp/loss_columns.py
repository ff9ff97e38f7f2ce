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

_COLUMNS: dict[type[nn.Module], int] = {
    MultipleNegativesRankingLoss: 3,
    CachedMultipleNegativesRankingLoss: 3,
    TripletLoss: 3,
    MegaBatchMarginLoss: 2,
}


def column_count(loss: nn.Module) -> int:
    """Return the number of columns: 2 (s, t), 3 (and the negative of s) or 4 (and that of t).

    This is the attribute `columns` of a loss. Without it, losses of sentence-transformers take the
    columns that they document, and other losses take 4. `MatryoshkaLoss` takes the columns of the
    loss that it wraps.

    The negative of t is never a column of a ranking loss: it would count as a negative of s, and
    can be another s of the mini-batch, with a cosine of 1 to itself.

    Raises:
        SettingsError: A loss of sentence-transformers that needs labels or other columns.
    """
    while isinstance(loss, MatryoshkaLoss):
        loss = loss.loss
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
