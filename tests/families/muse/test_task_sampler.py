"""Which rows a step of a dual encoder trains on: shares, epochs, batches of like lengths."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from st_paragram.families.muse.sampler import TaskSampler
from st_paragram.families.muse.settings import DualEncoderSettings


class Source:
    """Rows of a task with lengths of their own."""

    def __init__(self, rows, task="qa", lengths=None):
        self.task, self.of = task, np.arange(rows) % 17 if lengths is None else lengths

    def __len__(self):
        return len(self.of)

    def lengths(self, rows):
        return self.of[rows]


def sampler_of(sources, batch_size=8, buckets=1, seed=0, shares=None, power=1.0):
    shares = dict.fromkeys(("translation", "qa", "response", "nli"), 1.0) | (shares or {})
    settings = DualEncoderSettings(
        batch_size=batch_size,
        length_buckets=buckets,
        seed=seed,
        language_power=power,
        **{f"{task}_share": share for task, share in shares.items()},
    )
    return TaskSampler(sources, settings)


def taken(sampler, steps):
    return [sampler.at(step) for step in range(steps)]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_tasks_by_their_shares_and_languages_by_their_sizes(power):
    """Within three standard deviations; the share of a task that is not there is the others'."""
    sources = [
        Source(40, "translation"),
        Source(20, "translation"),
        Source(60),
        Source(3),
        Source(60, "response"),
    ]
    shares = {"translation": 0.5, "qa": 0.2, "response": 0.3, "nli": 0.7}
    sampler = sampler_of(sources, 4, 2, seed=5, shares=shares, power=power)
    found = sampler.probabilities
    assert found.sum() == pytest.approx(1) and found[:2].sum() == pytest.approx(0.5)
    assert found[0] / found[1] == pytest.approx(2**power) and found[2] / found[3] == pytest.approx(
        20**power
    )
    assert found[2:4].sum() == pytest.approx(0.2) and found[4] == pytest.approx(0.3)
    drawn = Counter(number for number, _ in taken(sampler, 2500))
    for number, share in enumerate(found):
        assert abs(drawn[number] - 2500 * share) < 3 * np.sqrt(2500 * share * (1 - share))


@hypothesis_settings(max_examples=40)
@given(st.integers(1, 90), st.integers(2, 9), st.integers(1, 4), st.integers(0, 10**6))
def test_an_epoch_has_each_row_once(rows, size, buckets, seed):
    """But for less than a batch; every batch is full, unless there are not as many rows."""
    sampler, batches = sampler_of([Source(rows)], size, buckets, seed), max(1, rows // size)
    drawn = [chosen for _, chosen in taken(sampler, 3 * batches)]
    epochs = [drawn[number * batches : (number + 1) * batches] for number in range(3)]
    for epoch in epochs:
        assert {len(batch) for batch in epoch} == {min(size, rows)}
        seen = np.concatenate(epoch)
        assert len(set(seen.tolist())) == len(seen) == min(rows, batches * size)
        assert seen.dtype == np.int64 and seen.min() >= 0 and seen.max() < rows
    if rows > 40 and batches > 3:
        assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))


def test_a_step_follows_from_its_number_and_the_seed_alone():
    made = [Source(70), Source(5), Source(33, "nli")]
    steps = [*range(60), 4095, 4096, 9000]
    expected = {step: sampler_of(made, 6, 2, seed=7).at(step) for step in steps}
    sampler = sampler_of(made, 6, 2, seed=7)
    for step in np.random.default_rng(1).permutation(np.repeat(steps, 2)).tolist():
        number, rows = sampler.at(step)
        assert number == expected[step][0] and rows.tolist() == expected[step][1].tolist()
    other = sampler_of(made, 6, 2, seed=8)
    assert [other.at(step)[1].tolist() for step in steps] != [
        expected[step][1].tolist() for step in steps
    ]


def test_batches_have_like_lengths():
    """Of a pool of four batches each has a quarter of the lengths."""
    lengths = np.random.default_rng(0).permutation(32)
    quarters = [
        lengths[rows] // 8 for _, rows in taken(sampler_of([Source(32, lengths=lengths)], 8, 4), 4)
    ]
    assert all(len(set(quarter)) == 1 for quarter in quarters)
    first = [quarter[0] for quarter in quarters]
    assert sorted(first) == [0, 1, 2, 3] and first != sorted(first)  # in random order
    assert any(
        len(set(lengths[rows] // 8)) > 1
        for _, rows in taken(sampler_of([Source(32, lengths=lengths)], 8), 4)
    )
