"""Beam search over a toy decoder whose every sentence can be enumerated."""

from __future__ import annotations

import itertools
import math
from functools import cache

import pytest
import torch

from st_paragram.families.bgt.beam_search import Hypothesis, beam_search

END, PAD, UNKNOWN, V = 0, 1, 2, 6
WRITABLE = torch.tensor([False, False, False, True, True, True])
LETTERS = (3, 4, 5)
MOST = 4


class Toy:
    """Logits that depend on the whole prefix and the latent vector; pad and unknown are often the
    likeliest.
    """

    def next_logits(self, previous, latents):
        assert previous.dtype == torch.int64 and (previous[:, 0] == END).all()
        assert len(previous) == len(latents)
        code = (previous * 7 ** torch.arange(previous.shape[1])).sum(1).double() % 997
        waves = torch.sin(
            code[:, None] * torch.arange(1, V + 1) * 1.3
            + latents.double() @ torch.ones(2, V).double()
        )
        return 2 * waves + torch.tensor([0.3, 1.0, 1.0, 0.0, 0.0, 0.0])


@cache
def next_log_probabilities(prefix, latent):
    logits = Toy().next_logits(torch.tensor([prefix]), torch.tensor([latent]))[0]
    return logits.log_softmax(0).tolist()


def log_probability(ids, latent):
    """Of the ids and the end behind them, by a loop."""
    prefix, total = (END,), 0.0
    for one in [*ids, END]:
        total += next_log_probabilities(prefix, tuple(latent.tolist()))[one]
        prefix = (*prefix, one)
    return total


def exhaustive(latent, penalty, most=MOST):
    """The best of all sentences of 1 to `most` letters."""
    every = (
        ids for length in range(1, most + 1) for ids in itertools.product(LETTERS, repeat=length)
    )
    return max((log_probability(ids, latent) / (len(ids) + 1) ** penalty, ids) for ids in every)


def search(latents, **options):
    return beam_search(Toy(), latents, END, WRITABLE, **({"max_length": MOST} | options))


@pytest.fixture
def latents():
    return torch.randn(6, 2)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_as_wide_as_all_hypotheses_finds_the_best(latents, penalty):
    for found, latent in zip(search(latents, beam=130, penalty=penalty), latents, strict=True):
        score, ids = exhaustive(latent, penalty)
        assert found.ids == ids
        assert found.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_scores_are_those_of_the_sentences_and_no_better_than_the_best(latents, beam):
    for found, latent in zip(search(latents, beam=beam), latents, strict=True):
        assert found.score == pytest.approx(
            log_probability(found.ids, latent) / (len(found.ids) + 1), abs=1e-5
        )
        assert found.score <= exhaustive(latent, 1.0)[0] + 1e-5


def test_other_sentences_of_a_batch_change_nothing(latents):
    together = search(latents, beam=3)
    alone = [search(latents[row : row + 1], beam=3)[0] for row in range(len(latents))]
    backwards = search(latents.flip(0), beam=3)[::-1]
    for one, two, three in zip(together, alone, backwards, strict=True):
        assert one.ids == two.ids == three.ids
        assert (
            one.score == pytest.approx(two.score, abs=1e-5) == pytest.approx(three.score, abs=1e-5)
        )


def test_a_short_sentence_wins_unless_the_penalty_is_large():
    class Ending:
        """The end has a probability of 0.6 after one id and of 0.9 after that; the only letter has
        the rest.
        """

        def next_logits(self, previous, latents):
            end = {1: 0.0, 2: 0.6}.get(previous.shape[1], 0.9)
            chances = torch.tensor([end, 0, 0, 1 - end, 0, 0]).clamp_min(1e-30)
            return chances.log().expand(len(previous), V)

    only = torch.tensor([False, False, False, True, False, False])
    found = [
        beam_search(Ending(), torch.zeros(1, 2), END, only, penalty=penalty)[0]
        for penalty in (0.0, 1.0, 2.0)
    ]
    assert [len(one.ids) for one in found] == [1, 1, 2]
    expected = [math.log(0.6), math.log(0.6) / 2, math.log(0.4 * 0.9) / 9]
    assert [one.score for one in found] == pytest.approx(expected)


def test_nothing_to_write_with_is_an_empty_sentence(latents):
    assert beam_search(Toy(), latents[:1], END, torch.zeros(V, dtype=torch.bool)) == [
        Hypothesis((), -math.inf)
    ]
    assert beam_search(Toy(), latents[:0], END, WRITABLE) == []
