"""Latent variables: divergence against torch's, gradients through samples, active units."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.generative import LATENT, SHAPE, batch_of
from torch.distributions import Independent, Normal, kl_divergence

from st_paragram.families.bgt.bilingual_generator import Gaussian, GaussianEncoder, active_units
from st_paragram.learning.modules.transformer_encoder import pooled_states, transformer_pipeline

NUMBERS = st.floats(-4, 4, allow_subnormal=False)


@given(arrays(np.float64, (2, 3, 4), elements=NUMBERS))
def test_the_divergence_is_torchs(values):
    mean, log_variance = torch.from_numpy(values)
    prior = Independent(Normal(torch.zeros(3, 4).double(), 1.0), 1)
    expected = kl_divergence(Independent(Normal(mean, (log_variance / 2).exp()), 1), prior)
    torch.testing.assert_close(
        Gaussian(mean, log_variance).divergence(), expected, atol=1e-6, rtol=1e-9
    )
    single = Gaussian(mean.float(), log_variance.float()).divergence()
    torch.testing.assert_close(single.double(), expected, atol=1e-6, rtol=1e-6)
    assert (single >= -1e-6).all()


def test_gradients_go_through_samples():
    mean, log_variance, noise = (torch.randn(3, 4, dtype=torch.float64) for _ in range(3))
    mean.requires_grad_()
    log_variance.requires_grad_()
    assert torch.autograd.gradcheck(lambda m, v: Gaussian(m, v).sample(noise), (mean, log_variance))
    assert torch.autograd.gradcheck(lambda m, v: Gaussian(m, v).divergence(), (mean, log_variance))


def test_the_mean_is_the_embedding(vocabulary, pairs):
    encoder = GaussianEncoder(transformer_pipeline(vocabulary, SHAPE, LATENT, "cpu")).eval()
    texts = [a for a, _ in pairs[:20]]
    batch = batch_of(vocabulary, texts)
    gaussian = encoder(batch.ids, batch.mask)
    np.testing.assert_allclose(
        gaussian.mean.detach(), encoder.pipeline.encode(texts), atol=1e-5, rtol=0
    )
    expected = (
        pooled_states(encoder.pipeline, batch.ids, batch.mask) @ encoder.log_variance.weight.T
    )
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
