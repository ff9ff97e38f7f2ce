"""The margin loss, and what a teacher adds to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss, margin_loss


class Term(Protocol):
    """A term of a loss that compares the embeddings of every so manieth pair with targets."""

    every: int

    def loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        """The term, a scalar, of float (n, D) and (n, components of a target)."""


class TaughtLoss(nn.Module):
    """weight * the margin loss of (s, t, negative of s, negative of t) + a term of the s and t and their targets."""

    def __init__(self, loss: MarginHardNegativeLoss, weight: float = 1.0, term: Term | None = None) -> None:
        """Weigh a loss and add to it.

        Args:
            loss: the margin loss.
            weight: of the margin loss.
            term: what is added; None for nothing.
        """
        super().__init__()
        self.margin_loss = loss
        self.weight = weight
        self.term = term

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Loss of a batch.

        Args:
            sentence_features: features of four columns of B texts each.
            labels: if there is a term, targets of every so manieth s and then t, float (2n, components).

        Returns:
            A scalar.
        """
        embeddings = self.margin_loss.embed(list(sentence_features))
        s, t, negative_of_s, negative_of_t = embeddings
        loss = self.weight * margin_loss(s, t, negative_of_s, negative_of_t, self.margin_loss.margin)
        if self.term is None or labels is None:
            return loss
        compared = torch.cat([column[:: self.term.every] for column in embeddings[:2]])
        return loss + self.term.loss(compared, labels)
