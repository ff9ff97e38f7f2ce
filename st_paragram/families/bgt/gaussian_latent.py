"""Diagonal Gaussians as latent variables: the map from a sentence's state to one, samples, the divergence from N(0, I).

Source: Kingma and Welling (ICLR 2014), equations 9 and 10, as EMNLP 2020 uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.learning.modules.transformer_encoder import pooled_states

#: A component whose mean varies by at least this much over sentences is active (Burda et al., ICLR 2016).
ACTIVE_VARIANCE = 0.01


@dataclass(frozen=True)
class Gaussian:
    """A diagonal Gaussian for each of B sentences.

    Attributes:
        mean: float (B, k).
        log_variance: float (B, k).
    """

    mean: Tensor
    log_variance: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        """Samples (B, k) by reparameterisation; `noise`, (B, k), is of N(0, I)."""
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def divergence(self) -> Tensor:
        """KL(q || N(0, I)) in nats, (B,): half the sum of mean² + variance - 1 - log variance."""
        return 0.5 * (self.mean.square() + self.log_variance.exp() - 1 - self.log_variance).sum(1)


class GaussianEncoder(nn.Module):
    """A pipeline of `transformer_encoder` as the mean of a Gaussian, and a linear map to its log variance.

    Args:
        pipeline: whose embedding is the mean, k components.
    """

    def __init__(self, pipeline: SentenceTransformer) -> None:
        super().__init__()
        dense: Any = pipeline[2]
        dense = dense.linear
        self.pipeline = pipeline
        self.log_variance = nn.Linear(dense.in_features, dense.out_features, bias=False)
        nn.init.xavier_uniform_(self.log_variance.weight)

    def forward(self, ids: Tensor, mask: Tensor) -> Gaussian:
        """The Gaussians of B sentences.

        Args:
            ids: int64 (B, L), each row ended and filled up.
            mask: bool (B, L): True but where it is filled up.
        """
        states = pooled_states(self.pipeline, ids, mask)
        dense: Any = self.pipeline[2]
        mean = dense.linear(states)
        return Gaussian(mean.float(), self.log_variance(states).float())


def active_units(means: Tensor) -> int:
    """How many components of (N, k) means carry something of the sentence: those with a variance of 0.01 or more."""
    return int((means.var(dim=0) >= ACTIVE_VARIANCE).sum()) if len(means) > 1 else 0
