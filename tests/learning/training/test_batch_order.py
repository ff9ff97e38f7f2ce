import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.learning.training.batch_order import EpochPermutation


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
