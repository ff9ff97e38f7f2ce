"""Encoders and decoders of the bilingual generative transformer and its baselines (EMNLP 2020).

A sentence of a pair is generated from the shared meaning and from properties of its language. The
encoder `semantic` gives the meaning, and a language's encoder the language properties. `generators`
generate a sentence from both, `translators` from the meaning alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.distributions import Normal

from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.families.bgt.settings import Side
from st_paragram.learning.modules.transformer_encoder import (
    SpecialIds,
    TransformerShape,
    pooled_states,
)


@dataclass(frozen=True)
class Gaussian:
    """A diagonal Gaussian for each of B sentences.

    Source: Kingma and Welling, ICLR 2014, equations 9 and 10.
    """

    mean: Tensor  # float (B, k)
    log_variance: Tensor  # float (B, k)

    def sample(self, noise: Tensor) -> Tensor:
        """Sample (B, k) by reparameterization; `noise`, (B, k), is drawn from N(0, I)."""
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def log_density(self, samples: Tensor) -> Tensor:
        """Compute log q of samples, (B, k) or one (k,) for all sentences, in nats, (B,)."""
        deviation = (0.5 * self.log_variance).exp()
        return Normal(self.mean, deviation).log_prob(samples).sum(1)

    def divergence(self) -> Tensor:
        """Compute KL(q || N(0, I)) in nats, (B,)."""
        variance = self.log_variance.exp()
        return 0.5 * (self.mean.square() + variance - 1 - self.log_variance).sum(1)


class GaussianEncoder(nn.Module):
    """A `transformer_encoder` pipeline for a Gaussian's mean, and a linear map for its variance.

    The map computes the logarithm of the variance.
    """

    def __init__(self, pipeline: SentenceTransformer) -> None:
        super().__init__()
        self.pipeline = pipeline
        dense: Any = pipeline[2]
        latent_dim, dim = dense.linear.weight.shape
        self.log_variance: nn.Linear = nn.Linear(dim, latent_dim, bias=False)
        nn.init.xavier_uniform_(self.log_variance.weight)

    def forward(self, ids: Tensor, mask: Tensor) -> Gaussian:
        """Compute the Gaussians of B sentences.

        Args:
            ids: Ids with end and padding, int64 (B, L).
            mask: False for padding, bool (B, L).
        """
        states = pooled_states(self.pipeline, ids, mask)
        dense: Any = self.pipeline[2]
        return Gaussian(dense.linear(states).float(), self.log_variance(states).float())


def active_units(means: Tensor) -> int:
    """Count components of means (N, k) with a variance of at least 0.01 over sentences.

    Source: Burda et al., ICLR 2016.
    """
    if len(means) < 2:
        return 0
    return int((means.var(dim=0) >= 0.01).sum())


@dataclass(frozen=True)
class DecoderShape:
    """The decoders of a model, and their sizes."""

    transformer: TransformerShape  # of each
    latent_dim: int  # dimensions of the semantic latent variable, and of each language variable
    generators: Sequence[Side]  # sides generated from all latent variables
    translators: Sequence[Side]  # sides generated from the other side's meaning
    at_attention: bool = True  # latent variables enter the layers
    at_logits: bool = True  # latent variables enter the logits


class BilingualGenerator(nn.Module):
    """The encoders and decoders of a pair of languages.

    The decoders generate ids below `vocabulary`.

    Attributes:
        semantic: Encoder of meaning for both languages; the pipeline's embedding is the mean.
        languages: Side -> encoder of language variables; empty if the model has none.
        generators: Side -> decoder with input [language; meaning].
        translators: Side -> decoder with the meaning as input.
    """

    def __init__(
        self,
        semantic: SentenceTransformer,
        languages: Mapping[Side, SentenceTransformer],
        vocabulary: int,
        special: SpecialIds,
        shape: DecoderShape,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.special = special
        self.semantic: GaussianEncoder = GaussianEncoder(semantic)
        self.languages: nn.ModuleDict = nn.ModuleDict()
        for side, pipeline in languages.items():
            self.languages[side] = GaussianEncoder(pipeline)
        input_dim = 2 * shape.latent_dim if languages else shape.latent_dim
        self.generators: nn.ModuleDict = nn.ModuleDict()
        for side in shape.generators:
            self.generators[side] = self._new_decoder(vocabulary, input_dim)
        self.translators: nn.ModuleDict = nn.ModuleDict()
        for side in shape.translators:
            self.translators[side] = self._new_decoder(vocabulary, shape.latent_dim)

    def _new_decoder(self, vocabulary: int, latent_dim: int) -> LatentDecoder:
        return LatentDecoder(
            vocabulary,
            self.shape.transformer,
            latent_dim,
            special=self.special,
            at_attention=self.shape.at_attention,
            at_logits=self.shape.at_logits,
        )

    @property
    def max_length(self) -> int:
        """Maximum ids per sentence for encoders and decoders, including the end."""
        return self.shape.transformer.max_length
