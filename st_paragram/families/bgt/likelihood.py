"""The likelihood of pairs under a trained model, and the information in its latent variables.

Source: EMNLP 2020, appendix A.1, with the estimators of He et al., ICLR 2019 ("Lagging Inference
Networks and Posterior Collapse in Variational Autoencoders").
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Independent, Normal

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, Gaussian
from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.families.bgt.settings import SIDES, Side
from st_paragram.families.bgt.translation_elbo import MEANING, Batches
from st_paragram.learning.modules.sentence_batch import SentenceBatch


def log_weights(
    generator: BilingualGenerator, batches: Batches, inferring: Side, noise: Tensor
) -> Tensor:
    """Compute log p(x, y, z) - log q(z | x, y) in nats for K samples of the variables of B pairs.

    The mean over samples estimates the evidence lower bound, and `log_likelihood` is tighter.

    Args:
        generator: Model in evaluation mode, trained with a prior (`bgt` or `english-vae`). A model
            without a generator for a side has the likelihood of the other side alone.
        batches: Sentences of the pairs by side.
        inferring: The side that infers the meaning.
        noise: Noise from N(0, I), float (K, B, 3, k), for the two languages and the meaning.

    Returns:
        float (K, B).

    Raises:
        SettingsError: The model only translates, so it gives pairs no likelihood.
    """
    if not generator.generators:
        raise SettingsError(
            "this model only translates, so pairs have no likelihood; train with --objective bgt"
        )
    source = batches[inferring]
    meaning = generator.semantic(source.ids, source.mask)
    languages = {}
    for side in SIDES:
        if side in generator.languages:
            batch = batches[side]
            languages[side] = generator.languages[side](batch.ids, batch.mask)
    weights = []
    for sample_noise in noise:
        z_meaning = meaning.sample(sample_noise[:, MEANING])
        weight = log_ratio(meaning, z_meaning)
        for place, side in enumerate(SIDES):
            if side not in generator.generators:
                continue
            latents = z_meaning
            if languages:
                z_language = languages[side].sample(sample_noise[:, place])
                weight = weight + log_ratio(languages[side], z_language)
                latents = torch.cat([z_language, z_meaning], 1)
            weight = weight + _log_probability(generator.generators[side], batches[side], latents)
        weights.append(weight)
    return torch.stack(weights)


def log_likelihood(weights: Tensor) -> Tensor:
    """Estimate log p(x, y) in nats, float (B,), as the log of the mean of K importance weights.

    `weights` are the results of `log_weights`, float (K, B). The estimate is a lower bound in
    expectation; it rises to log p(x, y) with K. Source: Burda et al., ICLR 2016.
    """
    return weights.logsumexp(0) - math.log(len(weights))


def mutual_information(posterior: Gaussian, noise: Tensor) -> float:
    """Estimate the mutual information I(x; z) under q in nats, from N sentences.

    It is the mean KL(q(z | x) || p(z)) minus KL(q(z) || p(z)), where q(z) is the mean of the N
    posteriors (Hoffman and Johnson, 2016); p(z) cancels. It cannot exceed log N.

    Args:
        posterior: q(z | x) of the sentences.
        noise: Noise from N(0, I) for one sample per sentence, float (N, k).
    """
    samples = posterior.sample(noise)
    density = _density(posterior)
    conditional = density.log_prob(samples)
    aggregated = [density.log_prob(sample).logsumexp(0) for sample in samples]
    differences = conditional - torch.stack(aggregated)
    return float(differences.mean()) + math.log(len(samples))


def log_ratio(posterior: Gaussian, samples: Tensor) -> Tensor:
    """Compute log p(z) - log q(z | x) of samples (B, k) in nats, (B,), with the prior N(0, I)."""
    prior = Gaussian(torch.zeros_like(samples), torch.zeros_like(samples))
    return _density(prior).log_prob(samples) - _density(posterior).log_prob(samples)


def _density(gaussian: Gaussian) -> Independent:
    deviation = (0.5 * gaussian.log_variance).exp()
    return Independent(Normal(gaussian.mean, deviation), 1)


def _log_probability(decoder: nn.Module, batch: SentenceBatch, latents: Tensor) -> Tensor:
    """Compute the log probability of each sentence given its latent vector, (B,)."""
    assert isinstance(decoder, LatentDecoder)
    logits = decoder.softmax(batch, latents).logits()
    losses = F.cross_entropy(logits, batch.targets, reduction="none")
    return -losses.new_zeros(len(batch)).index_add(0, batch.sentences, losses)
