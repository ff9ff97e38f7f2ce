"""The bound and its ablations: against plain loops, against the exact probability, and what sees
what.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from support.generative import (
    LATENT,
    TransformerShape,
    batch_of,
    batches_of,
    log_probabilities,
    new_generator,
    new_loss,
)
from torch.distributions import Normal

from st_paragram.families.bgt.settings import OBJECTIVES, SIDES, GenerativeSettings, other
from st_paragram.families.bgt.translation_elbo import TranslationElbo, annealed

KL = {"kl_semantic"}
PARTS = {
    "bgt": {"reconstruction", "translation", "kl_a", "kl_b"} | KL,
    "no-langvars": {"translation"} | KL,
    "no-prior": {"reconstruction", "translation"},
    "bilingual-trans": {"translation"},
    "english-trans": {"translation"},
    "english-ae": {"reconstruction"},
    "english-vae": {"reconstruction"} | KL,
}


@pytest.fixture
def batches(vocabulary, pairs):
    return batches_of(vocabulary, pairs[:6])


@pytest.fixture
def noise():
    return torch.randn(6, 3, LATENT)


def plain_parts(loss, objective, batches, inferring, noise, sampled):
    """What an objective is made of, out of `log_probabilities`, as the paper writes it."""
    g, a, b = loss.generator, batches["a"], batches["b"]
    noise_a, noise_b, noise_meaning = noise.unbind(1)

    def drawn(gaussian, noise):
        return (
            gaussian.mean + (gaussian.log_variance / 2).exp() * noise if sampled else gaussian.mean
        )

    def kl(gaussian):
        return (
            (gaussian.mean**2 + gaussian.log_variance.exp() - 1 - gaussian.log_variance) / 2
        ).sum()

    def nll(decoder, batch, latents):
        return -log_probabilities(decoder, batch, latents).sum()

    of_a, of_b = (g.semantic(batch.ids, batch.mask) for batch in (a, b))
    meaning = {"a": of_a, "b": of_b}[inferring]
    z = drawn(meaning, noise_meaning)
    parts = {}
    if objective in ("bgt", "no-prior"):
        own_a, own_b = g.languages["a"](a.ids, a.mask), g.languages["b"](b.ids, b.mask)
        written_a = nll(g.generators["a"], a, torch.cat([drawn(own_a, noise_a), z], 1))
        written_b = nll(g.generators["b"], b, torch.cat([drawn(own_b, noise_b), z], 1))
        parts["reconstruction"] = written_a + written_b
        to_a, to_b = nll(g.translators["a"], a, of_b.mean), nll(g.translators["b"], b, of_a.mean)
        parts["translation"] = to_a + to_b
        if objective == "bgt":
            parts |= {"kl_semantic": kl(meaning), "kl_a": kl(own_a), "kl_b": kl(own_b)}
    elif objective in ("no-langvars", "bilingual-trans"):
        to_b = nll(g.translators["b"], b, drawn(of_a, noise_a))
        to_a = nll(g.translators["a"], a, drawn(of_b, noise_b))
        parts["translation"] = (to_a + to_b) / 2
        if objective == "no-langvars":
            parts["kl_semantic"] = (kl(of_a) + kl(of_b)) / 2
    elif objective == "english-trans":
        parts["translation"] = nll(g.translators["b"], b, of_a.mean)
    else:
        parts["reconstruction"] = nll(g.generators["a"], a, z)
        if objective == "english-vae":
            parts["kl_semantic"] = kl(meaning)
    return parts


def total(parts, annealing):
    return sum(
        (annealing if name.startswith("kl_") else 1.0) * part for name, part in parts.items()
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("latent", ["sample", "mean"])
def test_each_objective_is_its_plain_form(vocabulary, batches, noise, objective, latent):
    loss = new_loss(vocabulary, objective, latent=latent, label_smoothing=0.0)
    sampled = latent == "sample" and objective in ("bgt", "no-langvars", "english-vae")
    for inferring in {loss.inferring_side(0), loss.inferring_side(1)}:
        terms = loss(batches, inferring, noise, 0.3)
        expected = plain_parts(loss, objective, batches, inferring, noise, sampled)
        found = dict(terms.parts)
        divergence = found.pop("divergence", torch.zeros(()))
        kl = [part for name, part in found.items() if name.startswith("kl_")]
        torch.testing.assert_close(divergence, 0.3 * sum(kl, torch.zeros(())), rtol=1e-5, atol=1e-3)
        assert set(found) == set(expected) == PARTS[objective]
        for name, part in found.items():
            torch.testing.assert_close(part, expected[name].detach(), rtol=1e-5, atol=1e-3)
            assert not part.requires_grad
        torch.testing.assert_close(terms.loss, total(expected, 0.3), rtol=1e-5, atol=1e-3)
        own = [parameter for parameter in loss.parameters() if parameter.requires_grad]
        found, wanted = (
            torch.autograd.grad(value, own, allow_unused=True)
            for value in (terms.loss, total(expected, 0.3))
        )
        for one, two in zip(found, wanted, strict=True):
            assert (one is None) == (two is None)
            assert one is None or torch.allclose(one, two, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_label_smoothing_and_weight_are_translations_alone(vocabulary, batches, noise, weight):
    loss = new_loss(vocabulary, label_smoothing=0.2, translation_weight=weight)
    terms = loss(batches, "b", noise, 0.5)
    parts = plain_parts(loss, "bgt", batches, "b", noise, True)
    smoothed = 0.0
    for side in SIDES:
        source = batches[other(side)]
        meaning = loss.generator.semantic(source.ids, source.mask).mean
        logits = loss.generator.translators[side].softmax(batches[side], meaning).logits()
        smoothed += F.cross_entropy(
            logits, batches[side].targets, reduction="sum", label_smoothing=0.2
        )
    expected = total(parts | {"translation": weight * smoothed}, 0.5)
    torch.testing.assert_close(terms.loss, expected, rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(
        terms.parts["translation"], weight * parts["translation"].detach(), rtol=1e-5, atol=1e-3
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sides_take_turns_where_both_are_written(vocabulary, objective):
    loss = new_loss(vocabulary, objective)
    expected = "abab" if objective in ("bgt", "no-prior") else "aaaa"
    assert "".join(map(loss.inferring_side, range(4))) == expected


def test_annealing():
    assert [annealed(step, 65536) for step in (0, 32768, 65536, 10**6)] == [0.0, 0.5, 1.0, 1.0]
    assert annealed(0, 0) == annealed(5, 0) == 1.0


def test_candidates_are_of_training_alone(vocabulary, batches, noise):
    exact, sampled = new_loss(vocabulary), new_loss(vocabulary, candidates=20)
    sampled.load_state_dict(exact.state_dict())
    expected = exact(batches, "a", noise).loss
    torch.testing.assert_close(sampled(batches, "a", noise).loss, expected)
    values = [sampled.train()(batches, "a", noise).loss for _ in range(20)]
    assert len({value.item() for value in values}) > 10
    assert abs(sum(values) / 20 / expected - 1) < 0.03
    sampled.candidates = len(vocabulary)
    torch.testing.assert_close(sampled(batches, "a", noise).loss, expected)


def test_the_bound_is_below_the_probability(vocabulary, pairs):
    """With one latent component the probability is an integral that can be computed."""
    torch.manual_seed(1)
    shape = TransformerShape(dim=8, layers=1, heads=2, ffn_dim=12, max_length=30)
    generator = new_generator(vocabulary, "english-vae", shape, latent_dim=1)
    loss = TranslationElbo(generator, GenerativeSettings(objective="english-vae")).eval()
    decoder, samples, text = generator.generators["a"], 1500, pairs[0][0]
    with torch.no_grad():
        for table in (decoder.latent_output.weight, decoder.layers[0].of_latent.weight):
            table.mul_(4)
        grid = torch.linspace(-8, 8, 801)[:, None]
        given = log_probabilities(decoder, batch_of(vocabulary, [text] * len(grid)), grid)
        density = given.double() + Normal(0.0, 1.0).log_prob(grid[:, 0].double())
        exact = (density.logsumexp(0) + math.log(16 / 800)).item()

        batch, noise = batch_of(vocabulary, [text] * samples), torch.randn(samples, 3, 1)
        bound = -loss({"a": batch, "b": batch}, "a", noise).loss.item() / samples
        gaussian = generator.semantic(batch.ids, batch.mask)
        z = gaussian.sample(noise[:, 2])
        posterior = Normal(gaussian.mean, (gaussian.log_variance / 2).exp())
        weights = (
            log_probabilities(decoder, batch, z)
            + (Normal(0.0, 1.0).log_prob(z) - posterior.log_prob(z))[:, 0]
        )
        sampled = (weights.logsumexp(0) - math.log(samples)).item()
    assert bound < exact - 0.05 and bound < sampled <= 0
    assert abs(sampled - exact) < 0.1
