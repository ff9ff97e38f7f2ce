"""Latent variables: divergence against torch's, samples, exact bounds where a model is linear, active units."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.generative import LATENT, SHAPE, batch_of
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from st_paragram.families.bgt.bilingual_generator import Gaussian, GaussianEncoder, active_units
from st_paragram.learning.modules.transformer_encoder import pooled_states, transformer_pipeline

NUMBERS = st.floats(-4, 4, allow_subnormal=False)


def test_the_prior_is_no_distance_from_itself():
    assert Gaussian(torch.zeros(3, 5), torch.zeros(3, 5)).divergence().tolist() == [0, 0, 0]


@given(arrays(np.float64, (2, 3, 4), elements=NUMBERS))
def test_the_divergence_is_torchs(values):
    mean, log_variance = torch.from_numpy(values)
    prior = Independent(Normal(torch.zeros(3, 4).double(), 1.0), 1)
    expected = kl_divergence(Independent(Normal(mean, (log_variance / 2).exp()), 1), prior)
    torch.testing.assert_close(Gaussian(mean, log_variance).divergence(), expected, atol=1e-6, rtol=1e-9)
    single = Gaussian(mean.float(), log_variance.float()).divergence()
    torch.testing.assert_close(single.double(), expected, atol=1e-6, rtol=1e-6)
    assert (single >= -1e-6).all()


def test_the_divergence_is_what_samples_say():
    gaussian = Gaussian(torch.tensor([[0.5, -1.0]]), torch.tensor([[0.3, -1.2]]))
    z = gaussian.sample(torch.randn(200_000, 2))
    scale = (gaussian.log_variance / 2).exp()
    ratio = (Normal(gaussian.mean, scale).log_prob(z) - Normal(0.0, 1.0).log_prob(z)).sum(1)
    assert abs(ratio.mean() - gaussian.divergence()[0]) < 5 * ratio.std() / 200_000**0.5
    torch.testing.assert_close(z.mean(0), gaussian.mean[0], atol=0.02, rtol=0)
    torch.testing.assert_close(z.var(0).log(), gaussian.log_variance[0], atol=0.02, rtol=0)


def test_gradients_go_through_samples():
    mean, log_variance, noise = (torch.randn(3, 4, dtype=torch.float64) for _ in range(3))
    mean.requires_grad_()
    log_variance.requires_grad_()
    assert torch.autograd.gradcheck(lambda m, v: Gaussian(m, v).sample(noise), (mean, log_variance))
    assert torch.autograd.gradcheck(lambda m, v: Gaussian(m, v).divergence(), (mean, log_variance))


def test_the_bound_of_a_linear_model_is_exact_at_its_posterior():
    """z ~ N(0, I), x = A z + noise of variance s: log p(x) is known, and so is the posterior, diagonal if A is."""
    diagonal, s = torch.tensor([1.5, -0.7, 0.2], dtype=torch.float64), 0.6
    x = torch.tensor([[0.4, -1.1, 0.9]], dtype=torch.float64)
    exact = MultivariateNormal(torch.zeros(3).double(), torch.diag(diagonal**2 + s)).log_prob(x[0])
    variance = 1 / (1 + diagonal**2 / s)
    posterior = Gaussian(variance * diagonal / s * x, variance.log()[None])
    noise = torch.randn(100_000, 3, dtype=torch.float64)

    def bound(gaussian):
        likelihood = Normal(diagonal * gaussian.sample(noise), s**0.5).log_prob(x).sum(1)
        return likelihood.mean() - gaussian.divergence()[0]

    assert abs(bound(posterior) - exact) < 0.01
    for shift, spread in ((0.3, 0.0), (0.0, 0.7), (-0.2, -0.3)):
        other = Gaussian(posterior.mean + shift, posterior.log_variance + spread)
        scale = (posterior.log_variance / 2).exp()
        gap = kl_divergence(
            Normal(other.mean, (other.log_variance / 2).exp()), Normal(posterior.mean, scale)
        ).sum()  # what the bound lacks is the divergence from the true posterior
        assert bound(other) < exact
        assert abs(bound(other) - (exact - gap)) < 0.05
        z = other.sample(noise)
        weights = (
            Normal(diagonal * z, s**0.5).log_prob(x)
            + Normal(0.0, 1.0).log_prob(z)
            - Normal(other.mean, (other.log_variance / 2).exp()).log_prob(z)
        ).sum(1)
        assert abs(weights.logsumexp(0) - math.log(len(weights)) - exact) < 0.05


@pytest.fixture
def encoder(vocabulary):
    return GaussianEncoder(transformer_pipeline(vocabulary, SHAPE, LATENT, "cpu")).eval()


def test_the_mean_is_the_embedding(encoder, vocabulary, pairs):
    texts = [a for a, _ in pairs[:20]]
    batch = batch_of(vocabulary, texts)
    gaussian = encoder(batch.ids, batch.mask)
    np.testing.assert_allclose(gaussian.mean.detach(), encoder.pipeline.encode(texts), atol=1e-5, rtol=0)
    expected = pooled_states(encoder.pipeline, batch.ids, batch.mask) @ encoder.log_variance.weight.T
    torch.testing.assert_close(gaussian.log_variance, expected)
    assert encoder.log_variance.bias is None
    gaussian.mean.sum().backward()
    assert encoder.log_variance.weight.grad is None


def test_units_that_vary_are_active():
    means = torch.zeros(1000, 4)
    means[:, 1:3] = torch.randn(1000, 2) * torch.tensor([0.05, 0.2])  # variances of 0.0025 and 0.04
    means[:, 3] = 7.0
    assert active_units(means) == 1
    assert active_units(means[:1]) == 0
    assert active_units(torch.randn(50, 4)) == 4
