"""The likelihood and the information of latent variables: Gaussians by hand, models by loops."""

import math

import pytest
import torch
from support.generative import LATENT, batches_of, log_probabilities, new_generator
from torch.distributions import Normal

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.bilingual_generator import Gaussian
from st_paragram.families.bgt.likelihood import (
    infer,
    information,
    log_likelihood,
    log_ratio,
    log_weights,
    mutual_information,
)
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder


def gaussian_weights(mean, variance, samples):
    """Weights of x = 1.5 for z ~ N(0, 1), x ~ N(z, 1), and q = N(mean, variance)."""
    posterior = Gaussian(torch.full((samples, 1), mean), torch.full((samples, 1), variance).log())
    z = posterior.sample(torch.randn(samples, 1))
    return Normal(z[:, 0], 1.0).log_prob(torch.tensor(1.5)) + log_ratio(posterior, z)


def test_the_likelihood_of_a_linear_gaussian_is_that_by_hand():
    torch.manual_seed(0)
    # x ~ N(0, 2): log p(1.5) = -1.5^2 / 4 - log(4 pi) / 2
    exact = -0.5625 - math.log(4 * math.pi) / 2
    # the posterior is N(0.75, 0.5): each weight is p(x)
    true_posterior = gaussian_weights(0.75, 0.5, 5)
    torch.testing.assert_close(true_posterior, torch.full((5,), exact))
    torch.testing.assert_close(log_likelihood(true_posterior[:, None]), torch.tensor([exact]))
    # with q = N(0, 1), the bound is log N(1.5; 0, 1) - 1 / 2
    weights = gaussian_weights(0.0, 1.0, 40_000)
    assert float(weights.mean()) == pytest.approx(
        -1.125 - math.log(2 * math.pi) / 2 - 0.5, abs=0.03
    )
    assert float(log_likelihood(weights[:, None])) == pytest.approx(exact, abs=0.02)


def test_the_information_of_gaussians_is_that_by_hand():
    torch.manual_seed(0)
    # z = m + e with m ~ N(0, 3), e ~ N(0, 1) has log(1 + 3) / 2 nats about m
    means = math.sqrt(3) * torch.randn(4000, 1)
    noise = torch.randn(4000, 1)
    posterior = Gaussian(means, torch.zeros(4000, 1))
    assert mutual_information(posterior, noise) == pytest.approx(math.log(4) / 2, abs=0.03)
    equal = Gaussian(torch.ones(50, 2), torch.ones(50, 2))
    assert mutual_information(equal, torch.randn(50, 2)) == pytest.approx(0, abs=1e-5)
    apart = Gaussian(1000.0 * torch.arange(8)[:, None], torch.zeros(8, 1))
    assert mutual_information(apart, torch.randn(8, 1)) == pytest.approx(math.log(8), abs=1e-5)


@pytest.mark.parametrize("inferring", ["a", "b"])
def test_weights_of_a_pair_are_its_plain_densities(vocabulary, pairs, inferring):
    torch.manual_seed(0)
    generator = new_generator(vocabulary)
    batches = batches_of(vocabulary, pairs[:4])
    noise = torch.randn(3, 4, 3, LATENT)
    with torch.no_grad():
        weights = log_weights(generator, batches, infer(generator, batches, inferring), noise)
        posteriors = [
            generator.languages["a"](batches["a"].ids, batches["a"].mask),
            generator.languages["b"](batches["b"].ids, batches["b"].mask),
            generator.semantic(batches[inferring].ids, batches[inferring].mask),
        ]
        for number in range(3):
            expected = torch.zeros(4)
            z = []
            for place, posterior in enumerate(posteriors):
                normal = Normal(posterior.mean, (posterior.log_variance / 2).exp())
                sample = normal.mean + normal.stddev * noise[number, :, place]
                expected += (Normal(0.0, 1.0).log_prob(sample) - normal.log_prob(sample)).sum(1)
                z.append(sample)
            for side, language in zip("ab", z, strict=False):
                decoder = generator.generators[side]
                latents = torch.cat([language, z[2]], 1)
                expected += log_probabilities(decoder, batches[side], latents)
            torch.testing.assert_close(weights[number], expected)
    assert (weights.mean(0) < log_likelihood(weights)).all()


def test_a_vae_has_the_likelihood_of_english(vocabulary, pairs):
    batches = batches_of(vocabulary, pairs[:2])
    generator = new_generator(vocabulary, "english-vae")
    noise = torch.zeros(1, 2, 3, LATENT)
    with torch.no_grad():
        (weight,) = log_weights(generator, batches, infer(generator, batches, "a"), noise)
        posterior = generator.semantic(batches["a"].ids, batches["a"].mask)
        english = log_probabilities(generator.generators["a"], batches["a"], posterior.mean)
    expected = english + (posterior.log_variance - posterior.mean**2).sum(1) / 2
    torch.testing.assert_close(weight, expected)


def test_a_model_that_only_translates_has_no_likelihood(vocabulary, pairs):
    generator = new_generator(vocabulary, "bilingual-trans")
    batches = batches_of(vocabulary, pairs[:2])
    with pytest.raises(SettingsError, match="only translates"):
        log_weights(generator, batches, {}, torch.zeros(1, 2, 3, LATENT))


def test_the_information_of_a_model(vocabulary, pairs):
    generator = new_generator(vocabulary)
    model = GenerativeEncoder.of(generator.semantic.pipeline, ("en", "es"), vocabulary, generator)
    estimates = information(model, pairs[:60], samples=3)  # more than one batch
    assert list(estimates)[2:4] == ["divergence of meaning", "mutual information of meaning"]
    batches = batches_of(vocabulary, pairs[:60])
    spanish = generator.languages["b"](batches["b"].ids, batches["b"].mask)
    expected = spanish.divergence().mean().item()
    assert estimates["divergence of es"] == pytest.approx(expected, rel=1e-4)
    assert estimates["evidence lower bound"] < estimates["log likelihood"] < 0
    for variable in ("meaning", "en", "es"):
        assert -0.2 < estimates[f"mutual information of {variable}"] <= math.log(60)
    assert information(model, pairs[:60], samples=3) == estimates
