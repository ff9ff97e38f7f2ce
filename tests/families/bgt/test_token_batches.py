"""Batches with a budget of tokens: every row once an epoch, the same number of batches, an order
that can be sought.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.token_batches import TokenBatches

BUDGET = 60
LENGTHS = st.lists(st.integers(1, BUDGET), min_size=1, max_size=90)


def batches_of(lengths, budget=BUDGET, seed=0, window=1 << 16):
    return TokenBatches(np.array(lengths, np.int32), budget, seed, window)


def epoch_of(batches, epoch=0):
    return [batches.at(epoch * len(batches) + i).tolist() for i in range(len(batches))]


def greedy(lengths, budget):
    """The lengths of batches, one sentence after another."""
    batches, batch = [], []
    for length in sorted(lengths):
        if batch and (len(batch) + 1) * length > budget:
            batches.append(batch)
            batch = []
        batch.append(length)
    return [*batches, batch]


@given(LENGTHS)
def test_batches_are_those_of_a_greedy_loop(lengths):
    found = [sorted(lengths[row] for row in rows) for rows in epoch_of(batches_of(lengths))]
    assert sorted(found) == sorted(greedy(lengths, BUDGET))


@given(LENGTHS, st.integers(1, 100), st.integers(0, 3))
def test_every_row_once_an_epoch_and_the_budget_kept(lengths, window, epoch):
    batches = batches_of(lengths, window=window)
    rows = epoch_of(batches, epoch)
    assert sorted(row for batch in rows for row in batch) == list(range(len(lengths)))
    for batch in rows:
        assert len(batch) * max(lengths[row] for row in batch) <= BUDGET
        assert len({row // window for row in batch}) == 1
    of_windows = [lengths[begin : begin + window] for begin in range(0, len(lengths), window)]
    assert len(batches) == sum(len(greedy(each, BUDGET)) for each in of_windows)


@settings(max_examples=30)
@given(LENGTHS, st.integers(5, 60), st.lists(st.integers(0, 300), min_size=1, max_size=20))
def test_any_batch_at_any_time(lengths, window, numbers):
    batches = batches_of(lengths, window=window)
    for number in numbers:
        assert batches.at(number).tolist() == batches_of(lengths, window=window).at(number).tolist()


def test_the_order_follows_from_the_seed(rng):
    lengths = rng.integers(3, 9, 100)
    assert epoch_of(batches_of(lengths, seed=1)) == epoch_of(batches_of(lengths, seed=1))
    assert epoch_of(batches_of(lengths, seed=1)) != epoch_of(batches_of(lengths, seed=2))


def test_a_row_longer_than_the_budget_is_refused():
    with pytest.raises(SettingsError, match="batch_tokens is 60, but a sentence has 61 tokens"):
        batches_of([3, 60, 5, 61, 7])
