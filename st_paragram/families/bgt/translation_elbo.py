"""The objectives of EMNLP 2020: the evidence lower bound of a translation pair, and translation
from the meaning.

For a pair (x_a, x_b), with z_s inferred from one side, z_a from x_a and z_b from x_b (equation 2 of
the paper, with the translation term of its section 3.2; here as losses in nats):

    - log p(x_a | z_a, z_s) - log p(x_b | z_b, z_s) + beta (KL_s + KL_a + KL_b)
    - w [log p(x_b | mean of z_s of x_a) + log p(x_a | mean of z_s of x_b)]

Terms with log p are sums over tokens. The translation term has label smoothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, Gaussian
from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.families.bgt.settings import OBJECTIVES, SIDES, Objective, Side, other
from st_paragram.families.bgt.softmax import linear_cross_entropy
from st_paragram.learning.modules.sentence_batch import SentenceBatch


def annealed(step: int, steps: int) -> float:
    """Return the weight of the KL terms: linear from 0 to 1 over `steps` updates; 1 if `steps` is
    0.
    """
    return min(1.0, step / steps) if steps else 1.0


@dataclass(frozen=True)
class ElboTerms:
    """The loss of a batch and its parts; sums over pairs, in nats.

    Attributes:
        loss: A scalar with gradients.
        parts: Name -> scalar without gradients, for the parts of the objective. Four add up to the
            loss:
            `reconstruction`, `translation` (both without label smoothing), `smoothing` (added by
            label smoothing) and `divergence` (the weighted KL terms). `kl_semantic`, and `kl_a` and
            `kl_b` for the languages, are the KL terms without weight.
        means: Means of the semantic variable on the inferring or input side, float (B, k), without
            gradients.
    """

    loss: Tensor
    parts: Mapping[str, Tensor]
    means: Tensor


class TranslationElbo(nn.Module):
    """The loss of a batch of pairs.

    Args:
        generator: Encoders and decoders of the objective.
        objective: A name in `OBJECTIVES`.
        latent: Input of generators: samples (the paper) or means (its code). If there are
            generators, translators read means.
        smoothing: Label smoothing of the translation term.
        translation_weight: Weight of the translation term.
        candidates: Sampled ids that represent the ids outside a training batch, see
            `LinearSoftmax.among`; 0: none.
    """

    def __init__(
        self,
        generator: BilingualGenerator,
        objective: Objective = "bgt",
        latent: Literal["sample", "mean"] = "sample",
        smoothing: float = 0.1,
        translation_weight: float = 1.0,
        candidates: int = 0,
    ) -> None:
        super().__init__()
        self.generator, self.parts = generator, OBJECTIVES[objective]
        self.sampled = self.parts.prior and latent == "sample"
        self.smoothing, self.candidates = smoothing, candidates
        self.weight = self.parts.weight * translation_weight

    @property
    def noise_shape(self) -> tuple[int, int]:
        """The shape of the noise for a pair in `forward`: (3, k)."""
        return 3, self.generator.shape.latent_dim

    def inferring_side(self, batch: int) -> Side:
        """Return the side that infers the pair's meaning, by batch number; "a" if only one side is
        generated.
        """
        return SIDES[batch % 2] if len(self.parts.generators) > 1 else "a"

    def forward(
        self,
        batches: Mapping[Side, SentenceBatch],
        inferring: Side,
        noise: Tensor,
        annealing: float = 1.0,
    ) -> ElboTerms:
        """Compute the loss of B pairs.

        Args:
            batches: Both sides.
            inferring: The side that infers the pair's meaning; it alternates from batch to batch.
            noise: Noise from N(0, I), float (B, 3, k), for the two languages and the meaning.
            annealing: Weight of the KL terms, see `annealed`.
        """
        model, objective = self.generator, self.parts
        read = {other(side) for side in objective.translators} | (
            {inferring} if objective.generators else set()
        )
        meanings = {
            side: model.semantic(batches[side].ids, batches[side].mask)
            for side in SIDES
            if side in read
        }
        languages: dict[Side, Gaussian] = {
            side: model.languages[side](batches[side].ids, batches[side].mask)
            for side in SIDES
            if objective.languages
        }
        losses, parts = [], {}
        if objective.generators:
            meaning = self._drawn(meanings[inferring], noise[:, 2])
            sums = []
            for side in objective.generators:
                own = (
                    [self._drawn(languages[side], noise[:, SIDES.index(side)])] if languages else []
                )
                latents = torch.cat([*own, meaning], 1)
                sums.append(self._entropy(model.generators[side], batches[side], latents))
            total, parts["reconstruction"] = torch.stack([torch.stack(each) for each in sums]).sum(
                0
            )
            losses.append(total)
        if objective.translators:
            sums = []
            for side in objective.translators:
                source = other(side)
                latents = meanings[source].mean
                if not objective.languages:  # there the translators are the model's only decoders
                    latents = self._drawn(meanings[source], noise[:, SIDES.index(source)])
                sums.append(
                    self._entropy(model.translators[side], batches[side], latents, self.smoothing)
                )
            total, plain = torch.stack([torch.stack(each) for each in sums]).sum(0)
            parts["translation"] = self.weight * plain
            if self.smoothing:
                parts["smoothing"] = self.weight * (total - plain)
            losses.append(self.weight * total)
        if objective.prior:
            if objective.generators:
                parts["kl_semantic"] = meanings[inferring].divergence().sum()
            else:  # of both directions, with their weight
                of_sides = torch.stack(
                    [meaning.divergence().sum() for meaning in meanings.values()]
                )
                parts["kl_semantic"] = objective.weight * of_sides.sum()
            parts |= {
                f"kl_{side}": language.divergence().sum() for side, language in languages.items()
            }
            divergences = [part for name, part in parts.items() if name.startswith("kl_")]
            parts["divergence"] = annealing * torch.stack(divergences).sum()
            losses.append(parts["divergence"])
        means = next(iter(meanings.values())).mean.detach()
        return ElboTerms(
            torch.stack(losses).sum(), {name: part.detach() for name, part in parts.items()}, means
        )

    def _drawn(self, gaussian: Gaussian, noise: Tensor) -> Tensor:
        return gaussian.sample(noise) if self.sampled else gaussian.mean

    def _entropy(
        self, decoder: nn.Module, batch: SentenceBatch, latents: Tensor, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(decoder, LatentDecoder)
        layer, targets = decoder.softmax(batch, latents), batch.targets
        if self.training and self.candidates:
            layer, targets = layer.among(targets, self.candidates)
        return linear_cross_entropy(layer, targets, smoothing)
