"""The ranking loss of dual encoders: among the sentences of a batch, find the one that belongs to each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.learning.losses.text_labels import text_labels


class DualEncoderRankingLoss(nn.Module):
    """Additive-margin softmax over the pairs of a batch.

    Source: Yang et al., IJCAI 2019, "Improving Multilingual Sentence Embedding using Bi-directional Dual Encoder with
    Additive Margin Softmax", which ACL 2020 takes over.

    The columns of the data set are x and y, translations or questions and their answers. Cosines times `scale` are the
    logits, the margin comes off those of the pairs, and the loss is the cross-entropy of finding each pair's y, or its
    mean with that of finding each pair's x (`both_directions`). Without a margin it is sentence-transformers'
    `MultipleNegativesRankingLoss`. Pairs that share a text are never each other's negatives if `mask_equal`.

    Example:
        >>> import st_paragram
        >>> loss = st_paragram.DualEncoderRankingLoss(st_paragram.load("p-sp-mini"), scale=20.0, margin=0.3)
        >>> loss.get_config_dict()["margin"]
        0.3
    """

    def __init__(
        self,
        model: SentenceTransformer,
        scale: float = 20.0,
        margin: float = 0.3,
        mask_equal: bool = True,
        both_directions: bool = True,
    ) -> None:
        """Train `model`.

        Args:
            model: any SentenceTransformer.
            scale: of the cosines.
            margin: that comes off the cosine of a pair; 0: none.
            mask_equal: pairs with an equal text on one side are not negatives.
            both_directions: look for the x of each y, too.

        Raises:
            SettingsError: a scale that is not positive, or a negative margin.
        """
        super().__init__()
        if not (scale > 0 and margin >= 0):
            raise SettingsError(f"scale is {scale} and margin {margin}; scale must be positive, margin at least 0")
        self.model = model
        self.scale, self.margin = scale, margin
        self.mask_equal, self.both_directions = mask_equal, both_directions

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Loss of a batch, a scalar.

        Args:
            sentence_features: features of two columns of B texts each.
            labels: ignored; pairs need none.

        Raises:
            SettingsError: another number of columns.
        """
        columns = list(sentence_features)
        if len(columns) != 2:
            raise SettingsError(f"DualEncoderRankingLoss got {len(columns)} columns of text; it takes 2")
        equal = None
        if self.mask_equal:
            first, second = text_labels(columns)
            equal = sharing(first, second)
        x, y = (F.normalize(self.model(column)["sentence_embedding"], dim=1) for column in columns)
        return ranking_loss(x, y, self.scale, self.margin, equal, self.both_directions)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model card."""
        names = ("scale", "margin", "mask_equal", "both_directions")
        return {name: getattr(self, name) for name in names}

    @property
    def citation(self) -> str:
        """BibTeX for the model card."""
        return """
@inproceedings{yang-etal-2020-multilingual,
    title = "Multilingual Universal Sentence Encoder for Semantic Retrieval",
    author = "Yang, Yinfei and Cer, Daniel and Ahmad, Amin and others",
    booktitle = "Proceedings of ACL 2020: System Demonstrations",
    year = "2020",
}
"""


def ranking_loss(
    x: Tensor, y: Tensor, scale: float, margin: float, equal: Tensor | None = None, both_directions: bool = True
) -> Tensor:
    """The loss on unit vectors of pairs, which are each other's negatives.

    Args:
        x: float (B, D).
        y: float (B, D): row i belongs to row i of x.
        scale: of the cosines.
        margin: that comes off those of the pairs.
        equal: bool (B, B): pairs i and j share a text, and are not negatives of each other; its diagonal is ignored.
        both_directions: the mean of finding y and of finding x, or finding y alone.

    Returns:
        A scalar, float32.
    """
    loss = finding_loss(x, y, scale, margin, equal)
    if not both_directions:
        return loss
    return (loss + finding_loss(y, x, scale, margin, None if equal is None else equal.T)) / 2


def finding_loss(x: Tensor, y: Tensor, scale: float, margin: float, equal: Tensor | None = None) -> Tensor:
    """The cross-entropy of finding what belongs to each x among all y.

    Args:
        x: float (B, D), unit vectors.
        y: float (B + K, D), unit vectors: row i < B belongs to row i of x, and the others to none.
        scale: of the cosines.
        margin: that comes off those of the pairs.
        equal: bool (B, B + K): what is not a negative; its diagonal is ignored.

    Returns:
        A scalar, float32.
    """
    with torch.autocast(x.device.type, enabled=False):
        cosines = x.float() @ y.float().T if x.dtype != torch.float64 else x @ y.T
        pairs = torch.eye(*cosines.shape, dtype=torch.bool, device=x.device)
        logits = scale * (cosines - margin * pairs)
        if equal is not None:
            logits = logits.masked_fill(equal & ~pairs, -torch.inf)
        return F.cross_entropy(logits, torch.arange(len(x), device=x.device))


def sharing(first: Tensor, second: Tensor, pairs: int | None = None) -> Tensor:
    """Which pairs share a text with the first ones, bool (B, N).

    Args:
        first: int64 (N,), equal where texts of the first side are.
        second: int64 (N,), the same of the second side.
        pairs: B; None: all N.
    """
    return (first[:pairs, None] == first[None]) | (second[:pairs, None] == second[None])
