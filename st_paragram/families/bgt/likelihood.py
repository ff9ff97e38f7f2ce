"""The likelihood of pairs under a trained model, and the information in its latent variables.

Source: EMNLP 2020, appendix A.1, with the estimators of He et al., ICLR 2019 ("Lagging Inference
Networks and Posterior Collapse in Variational Autoencoders").
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, Gaussian
from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import SIDES, Side
from st_paragram.learning.modules.sentence_batch import SentenceBatch

Batches = Mapping[str, SentenceBatch]  # by side
Posteriors = dict[str, Gaussian]  # q of the meaning, and of the language variables by side
_BATCH = 50  # pairs
_MEANING = "meaning"  # the variable of the pair, next to the sides' language variables


@torch.inference_mode()
def information(
    model: GenerativeEncoder, pairs: Sequence[tuple[str, str]], samples: int = 100
) -> dict[str, float]:
    """Estimate the likelihood of pairs and the information in each latent variable.

    The meaning is inferred from the first side.

    Args:
        model: Model trained with a prior (`bgt` or `english-vae`).
        pairs: Held-out sentences in the order of the model's languages.
        samples: Samples of the latent variables per pair, for the likelihood.

    Returns:
        Quantity -> its mean over pairs in nats: evidence lower bound and log likelihood, and for
        each variable its divergence from the prior and its mutual information with the sentence.

    Raises:
        SettingsError: The model only translates, so it gives pairs no likelihood.
    """
    generator = model.generator
    random = torch.Generator().manual_seed(0)
    weights = []
    parameters = defaultdict(list)
    for begin in range(0, len(pairs), _BATCH):
        batches: dict[str, SentenceBatch] = {}
        columns = zip(*pairs[begin : begin + _BATCH], strict=True)
        for side, texts in zip(SIDES, columns, strict=True):
            ids, offsets = model.sentencepiece.encode(texts)
            batch = SentenceBatch.of(ids, offsets, generator.special, generator.max_length)
            batches[side] = batch.to(model.device)
        posteriors = infer(generator, batches, "a")
        shape = (samples, len(batches["a"]), 3, generator.shape.latent_dim)
        noise = torch.randn(shape, generator=random).to(model.device)
        weights.append(log_weights(generator, batches, posteriors, noise))
        for variable, gaussian in posteriors.items():
            parameters[variable].append(torch.stack([gaussian.mean, gaussian.log_variance]))
    all_weights = torch.cat(weights, 1)
    estimates = {
        "evidence lower bound": float(all_weights.mean()),
        "log likelihood": float(log_likelihood(all_weights).mean()),
    }
    names: dict[str, str] = dict(zip(SIDES, model.languages, strict=True))
    for variable, tensors in parameters.items():
        name = names.get(variable, variable)
        posterior = Gaussian(*torch.cat(tensors, 1))
        noise = torch.randn(posterior.mean.shape, generator=random).to(model.device)
        estimates[f"divergence of {name}"] = float(posterior.divergence().mean())
        estimates[f"mutual information of {name}"] = mutual_information(posterior, noise)
    return estimates


def infer(generator: BilingualGenerator, batches: Batches, inferring: Side) -> Posteriors:
    """Infer the variables of pairs: `meaning`, and those of languages by side.

    `inferring` is the side that infers the meaning.
    """
    source = batches[inferring]
    posteriors = {_MEANING: generator.semantic(source.ids, source.mask)}
    for side, encoder in generator.languages.items():
        posteriors[side] = encoder(batches[side].ids, batches[side].mask)
    return posteriors


def log_weights(
    generator: BilingualGenerator, batches: Batches, posteriors: Posteriors, noise: Tensor
) -> Tensor:
    """Compute log p(x, y, z) - log q(z | x, y) in nats for K samples of the variables of B pairs.

    Their mean over samples estimates the evidence lower bound; `log_likelihood` is tighter.

    Args:
        generator: Model in evaluation mode. If it generates only one side, p is of that side.
        batches: Sentences of the pairs by side.
        posteriors: q of the variables, from `infer`.
        noise: Noise from N(0, I), float (K, B, 3, k), for the two languages and the meaning.

    Returns:
        float (K, B).

    Raises:
        SettingsError: The model only translates, so it gives pairs no likelihood.
    """
    if not generator.generators:
        raise SettingsError("this model only translates; train one with --objective bgt")
    weights = []
    for sample_noise in noise:
        z = {}
        weight = sample_noise.new_zeros(len(sample_noise))
        for place, variable in enumerate((*SIDES, _MEANING)):
            if variable in posteriors:
                z[variable] = posteriors[variable].sample(sample_noise[:, place])
                weight = weight + log_ratio(posteriors[variable], z[variable])
        for side, decoder in generator.generators.items():
            latents = z[_MEANING]
            if side in z:
                latents = torch.cat([z[side], latents], 1)
            weight = weight + _log_probability(decoder, batches[side], latents)
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
    aggregated = [posterior.log_density(sample).logsumexp(0) for sample in samples]
    differences = posterior.log_density(samples) - torch.stack(aggregated)
    return float(differences.mean()) + math.log(len(samples))


def log_ratio(posterior: Gaussian, samples: Tensor) -> Tensor:
    """Compute log p(z) - log q(z | x) of samples (B, k) in nats, (B,), with the prior N(0, I)."""
    zeros = torch.zeros_like(samples)
    return Gaussian(zeros, zeros).log_density(samples) - posterior.log_density(samples)


def _log_probability(decoder: nn.Module, batch: SentenceBatch, latents: Tensor) -> Tensor:
    """Compute the log probability of each sentence given its latent vector, (B,)."""
    assert isinstance(decoder, LatentDecoder)
    logits = decoder.softmax(batch, latents).logits()
    losses = F.cross_entropy(logits, batch.targets, reduction="none")
    return -losses.new_zeros(len(batch)).index_add(0, batch.sentences, losses)
