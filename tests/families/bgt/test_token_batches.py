"""Batches with a budget of tokens: every row once an epoch, the same number of batches, an order that can be sought."""

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


def test_epochs_differ_in_order_and_in_what_is_together(rng):
    lengths = rng.integers(3, 9, 400)
    batches = batches_of(lengths, window=150)
    first, second = epoch_of(batches, 0), epoch_of(batches, 1)
    assert len(first) == len(second) and first != second
    together = {frozenset(batch) for batch in first} & {frozenset(batch) for batch in second}
    assert len(together) < len(first) / 10
    sizes = [[int(lengths[batch].max()) for batch in epoch] for epoch in (first, second)]
    assert sizes[0] != sizes[1] and sorted(sizes[0]) == sorted(sizes[1])
    assert sizes[0] != sorted(sizes[0])  # lengths come in a random order
    windows = [[batch[0] // 150 for batch in epoch_of(batches, epoch)] for epoch in range(6)]
    assert len({tuple(dict.fromkeys(each)) for each in windows}) > 1  # and so do windows


def test_the_order_follows_from_the_seed(rng):
    lengths = rng.integers(3, 9, 100)
    assert epoch_of(batches_of(lengths, seed=1)) == epoch_of(batches_of(lengths, seed=1))
    assert epoch_of(batches_of(lengths, seed=1)) != epoch_of(batches_of(lengths, seed=2))


@given(LENGTHS, st.integers(1, 30))
def test_rows_of_length_0_are_left_out(lengths, window):
    """What is left has the batches that it would have if the others were not there."""
    with_others = [0, *(number for length in lengths for number in (length, 0))]
    found = epoch_of(batches_of(with_others, window=2 * window))
    assert sorted(row for batch in found for row in batch) == list(range(1, 2 * len(lengths), 2))
    of_windows = [lengths[max(0, begin) : begin + window] for begin in range(0, len(lengths) + 1, window)]
    assert len(found) == sum(len(greedy(each, BUDGET)) for each in of_windows if each)


@pytest.mark.parametrize("window", [2, 1 << 16])
def test_a_row_longer_than_the_budget_is_refused(window):
    with pytest.raises(SettingsError, match="batch_tokens is 60, and a sentence has 61 pieces") as caught:
        batches_of([3, 60, 5, 61, 7], window=window)
    assert "\n" not in str(caught.value)
    assert sorted(map(len, epoch_of(batches_of([3, 60, 5, 60, 7], window=window))))


def test_lengths_of_a_store(store, vocabulary, pairs):
    counts = np.array([[len(vocabulary.encode([text])[0]) for text in pair] for pair in pairs[:40]])
    for place, side in enumerate("ab"):
        np.testing.assert_array_equal(store.lengths(side, 0, 40), counts[:, place])
        np.testing.assert_array_equal(store.lengths(side, 11, 17), counts[11:17, place])
        assert len(store.lengths(side, 0, len(store))) == len(store)
        assert store.lengths(side, 5, 5).tolist() == []
