"""The objectives of EMNLP 2020: the evidence lower bound of a pair, and translation.

For a pair (x_a, x_b), with z_s inferred from one side, z_a from x_a and z_b from x_b (equation 2 of
the paper, with the translation term of its section 4.2; here as losses in nats):

    - log p(x_a | z_a, z_s) - log p(x_b | z_b, z_s) + beta (KL_s + KL_a + KL_b)
    - w [log p(x_b | mean of z_s of x_a) + log p(x_a | mean of z_s of x_b)]

Terms with log p are sums over tokens. The translation term has label smoothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, Gaussian
from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.families.bgt.settings import OBJECTIVES, SIDES, GenerativeSettings, Side, other
from st_paragram.families.bgt.softmax import linear_cross_entropy
from st_paragram.learning.modules.sentence_batch import SentenceBatch

Batches = Mapping[Side, SentenceBatch]
_MEANING = 2  # place of the meaning in the noise of a pair, after both languages


def annealed(step: int, steps: int) -> float:
    """Return the weight of the KL terms: linear from 0 to 1 over `steps` updates.

    It is 1 if `steps` is 0.
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
        settings: Settings of the run: `objective`, `latent`, `label_smoothing`,
            `translation_weight` and `candidates`.
    """

    def __init__(self, generator: BilingualGenerator, settings: GenerativeSettings) -> None:
        super().__init__()
        self.generator = generator
        self.objective = OBJECTIVES[settings.objective]
        # if there are generators, translators always read means
        self.sampled: bool = self.objective.prior and settings.latent == "sample"
        self.smoothing: float = settings.label_smoothing
        self.candidates: int = settings.candidates
        self.weight: float = self.objective.weight * settings.translation_weight

    def inferring_side(self, batch: int) -> Side:
        """Return the side that infers the pair's meaning, by batch number.

        It is always "a" if only one side is generated.
        """
        return SIDES[batch % 2] if len(self.objective.generators) > 1 else "a"

    def forward(
        self, batches: Batches, inferring: Side, noise: Tensor, annealing: float = 1.0
    ) -> ElboTerms:
        """Compute the loss of B pairs.

        Args:
            batches: Both sides.
            inferring: The side that infers the pair's meaning; it alternates from batch to batch.
            noise: Noise from N(0, I), float (B, 3, k), for the two languages and the meaning.
            annealing: Weight of the KL terms, see `annealed`.
        """
        sources = {other(side) for side in self.objective.translators}
        if self.objective.generators:
            sources.add(inferring)
        meanings: dict[Side, Gaussian] = {}
        languages: dict[Side, Gaussian] = {}
        for side in sorted(sources):
            batch = batches[side]
            meanings[side] = self.generator.semantic(batch.ids, batch.mask)
        if self.objective.languages:
            for side in SIDES:
                batch = batches[side]
                languages[side] = self.generator.languages[side](batch.ids, batch.mask)

        losses = []
        parts = {}
        if self.objective.generators:
            meaning = self._latent(meanings[inferring], noise[:, _MEANING])
            loss = self._reconstruction(batches, languages, meaning, noise)
            losses.append(loss)
            parts["reconstruction"] = loss
        if self.objective.translators:
            smoothed, plain = self._translation(batches, meanings, noise)
            losses.append(self.weight * smoothed)
            parts["translation"] = self.weight * plain
            if self.smoothing:
                parts["smoothing"] = self.weight * (smoothed - plain)
        if self.objective.prior:
            divergences = self._divergences(meanings, languages, inferring)
            divergence = annealing * torch.stack(list(divergences.values())).sum()
            losses.append(divergence)
            parts |= divergences
            parts["divergence"] = divergence
        first_meaning = next(iter(meanings.values()))
        return ElboTerms(
            loss=torch.stack(losses).sum(),
            parts={name: part.detach() for name, part in parts.items()},
            means=first_meaning.mean.detach(),
        )

    def _reconstruction(
        self, batches: Batches, languages: Mapping[Side, Gaussian], meaning: Tensor, noise: Tensor
    ) -> Tensor:
        """Sum - log p of the generated sides, given the pair's meaning."""
        losses = []
        for side in self.objective.generators:
            latents = meaning
            if languages:
                language = self._latent(languages[side], noise[:, SIDES.index(side)])
                latents = torch.cat([language, meaning], 1)
            decoder = self.generator.generators[side]
            loss, _ = self._cross_entropy(decoder, batches[side], latents)
            losses.append(loss)
        return torch.stack(losses).sum()

    def _translation(
        self, batches: Batches, meanings: Mapping[Side, Gaussian], noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Sum - log p of translations, with and without label smoothing."""
        losses = []
        for side in self.objective.translators:
            source = other(side)
            latents = meanings[source].mean
            if not self.objective.languages:  # translators are the only decoders of the model
                latents = self._latent(meanings[source], noise[:, SIDES.index(source)])
            decoder = self.generator.translators[side]
            loss = self._cross_entropy(decoder, batches[side], latents, self.smoothing)
            losses.append(torch.stack(loss))
        smoothed, plain = torch.stack(losses).sum(0)
        return smoothed, plain

    def _divergences(
        self, meanings: Mapping[Side, Gaussian], languages: Mapping[Side, Gaussian], inferring: Side
    ) -> dict[str, Tensor]:
        """Sum the KL terms of the meaning and of each language."""
        if self.objective.generators:
            semantic = meanings[inferring].divergence().sum()
        else:  # of both directions, with their weight
            sums = [meaning.divergence().sum() for meaning in meanings.values()]
            semantic = self.objective.weight * torch.stack(sums).sum()
        divergences = {"kl_semantic": semantic}
        for side, language in languages.items():
            divergences[f"kl_{side}"] = language.divergence().sum()
        return divergences

    def _latent(self, gaussian: Gaussian, noise: Tensor) -> Tensor:
        return gaussian.sample(noise) if self.sampled else gaussian.mean

    def _cross_entropy(
        self, decoder: nn.Module, batch: SentenceBatch, latents: Tensor, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(decoder, LatentDecoder)
        layer = decoder.softmax(batch, latents)
        targets = batch.targets
        if self.training and self.candidates:
            layer, targets = layer.among(targets, self.candidates)
        return linear_cross_entropy(layer, targets, smoothing)
