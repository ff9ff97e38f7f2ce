"""The parts of the bilingual generative transformer and its baselines (EMNLP 2020): encoders and
decoders.

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

from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.families.bgt.settings import Side
from st_paragram.learning.modules.transformer_encoder import (
    SpecialIds,
    TransformerShape,
    pooled_states,
)


@dataclass(frozen=True)
class Gaussian:
    """A diagonal Gaussian for each of B sentences (Kingma and Welling, ICLR 2014, equations 9 and
    10).
    """

    mean: Tensor  # float (B, k)
    log_variance: Tensor  # float (B, k)

    def sample(self, noise: Tensor) -> Tensor:
        """Sample (B, k) by reparameterization; `noise`, (B, k), is drawn from N(0, I)."""
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def divergence(self) -> Tensor:
        """Compute KL(q || N(0, I)) in nats, (B,): half the sum of mean² + variance - 1 - log
        variance.
        """
        return 0.5 * (self.mean.square() + self.log_variance.exp() - 1 - self.log_variance).sum(1)


class GaussianEncoder(nn.Module):
    """A `transformer_encoder` pipeline for the mean of a Gaussian, and a linear map for its log
    variance.
    """

    def __init__(self, pipeline: SentenceTransformer) -> None:
        super().__init__()
        dense: Any = pipeline[2]
        self.pipeline = pipeline
        self.log_variance = nn.Linear(
            dense.linear.in_features, dense.linear.out_features, bias=False
        )
        nn.init.xavier_uniform_(self.log_variance.weight)

    def forward(self, ids: Tensor, mask: Tensor) -> Gaussian:
        """Compute the Gaussians of B sentences: ids with end and padding, int64 (B, L), and their
        mask, bool (B, L).
        """
        states = pooled_states(self.pipeline, ids, mask)
        dense: Any = self.pipeline[2]
        return Gaussian(dense.linear(states).float(), self.log_variance(states).float())


def active_units(means: Tensor) -> int:
    """Count components of means (N, k) with a variance of at least 0.01 over sentences (Burda et
    al., ICLR 2016).
    """
    return int((means.var(dim=0) >= 0.01).sum()) if len(means) > 1 else 0


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
    """The encoders and decoders of a pair of languages; the decoders generate ids below
    `vocabulary`.

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
        self.shape, self.special = shape, special
        self.semantic = GaussianEncoder(semantic)
        self.languages = nn.ModuleDict(
            {side: GaussianEncoder(pipeline) for side, pipeline in languages.items()}
        )

        def decoder(latent_dim: int) -> LatentDecoder:
            ways = (shape.at_attention, shape.at_logits)
            return LatentDecoder(vocabulary, shape.transformer, latent_dim, special, *ways)

        both = shape.latent_dim * (2 if languages else 1)
        self.generators = nn.ModuleDict({side: decoder(both) for side in shape.generators})
        self.translators = nn.ModuleDict(
            {side: decoder(shape.latent_dim) for side in shape.translators}
        )

    @property
    def max_length(self) -> int:
        """Maximum ids per sentence for encoders and decoders, including the end."""
        return self.shape.transformer.max_length
