import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.learning.training.batch_order import BatchOrder, EpochPermutation, turns


@given(st.integers(1, 3000), st.integers(0, 2**32), st.integers(0, 30), st.integers(1, 500))
def test_epoch_permutation_is_a_permutation_in_any_pieces(n, seed, epoch, step):
    permutation = EpochPermutation(n, seed, epoch)
    whole = permutation[0:n]
    assert sorted(whole.tolist()) == list(range(n))
    assert np.concatenate([permutation[i : i + step] for i in range(0, n, step)]).tolist() == whole.tolist()


def test_epoch_permutation_depends_on_seed_and_epoch_and_looks_random():
    n = 20_000
    first = EpochPermutation(n, 1, 0)[0:n]
    for other in (EpochPermutation(n, 1, 1)[0:n], EpochPermutation(n, 2, 0)[0:n], np.arange(n)):
        assert (first == other).sum() < 10  # a random permutation agrees with another in 1 place on average
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.03


def test_turns_by_hand():
    # Places (i + 1/2) / n: 1/8 3/8 5/8 7/8 for the first store, 1/4 3/4 for the second.
    assert turns([4, 2]).tolist() == [0, 4, 1, 2, 5, 3]
    assert turns([3]).tolist() == [0, 1, 2]
    assert turns([1, 1, 1]).tolist() == [0, 1, 2]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_turns_are_even(counts):
    order = turns(counts)
    assert sorted(order.tolist()) == list(range(sum(counts)))
    ends = np.cumsum(counts)
    store = np.searchsorted(ends, order, side="right")
    for index, count in enumerate(counts):
        own = order[store == index]
        assert own.tolist() == sorted(own.tolist())
        had, share = np.cumsum(store == index), np.arange(1, len(order) + 1) * count / sum(counts)
        assert np.abs(had - share).max() <= (len(counts) + 1) / 2


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=4),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    epoch=st.integers(0, 3),
)
def test_an_epoch_has_each_pair_of_each_store_once(sizes, batch_size, seed, epoch):
    names = [f"store-{index}" for index in range(len(sizes))]
    order = BatchOrder(dict(zip(names, sizes, strict=True)), batch_size, seed)
    assert len(order) == sum(-(-size // batch_size) for size in sizes)
    seen = {name: [] for name in names}
    for step in range(epoch * len(order), (epoch + 1) * len(order)):
        name, rows = order.at(step)
        assert 1 <= len(rows) <= batch_size
        seen[name].extend(rows.tolist())
    for name, size in zip(names, sizes, strict=True):
        assert sorted(seen[name]) == list(range(size))


def test_one_store_is_walked_through_in_the_order_of_the_epochs_permutation():
    order = BatchOrder({"pairs": 20}, 8, seed=3)
    for epoch in (0, 1):
        rows = np.concatenate([order.at(3 * epoch + index)[1] for index in range(3)])
        assert rows.tolist() == EpochPermutation(20, 3, epoch)[0:20].tolist()


@pytest.mark.parametrize("seed", [4, 5])
def test_a_step_follows_from_its_number_and_the_seed(seed):
    sizes = {"a": 100, "b": 40}
    name, rows = BatchOrder(sizes, 8, seed).at(29)
    again = BatchOrder(sizes, 8, seed)
    for step in (3, 70):
        again.at(step)
    assert again.at(29)[0] == name and again.at(29)[1].tolist() == rows.tolist()
    assert BatchOrder(sizes, 8, seed + 1).at(29)[1].tolist() != rows.tolist()
