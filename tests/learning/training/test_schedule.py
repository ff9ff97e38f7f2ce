from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.learning.training.mega_batch import MegaBatch, mega_batches, text_labels


def test_m_grows_by_one_after_each_interval():
    sizes = [(m.start, m.stop, m.size) for m in islice(mega_batches(100, maximum=4, anneal_interval=6), 9)]
    # 6 mini-batches at M = 1; then 7, 8 | 9, 10 | 11, 12 (12 passed) | 13-15 | 16-18 (18 passed) | 19-22 ...
    assert sizes[:6] == [(i, i + 1, 1) for i in range(6)]
    assert sizes[6:] == [(6, 8, 2), (8, 10, 2), (10, 12, 2)]
    rest = [m.size for m in mega_batches(100, maximum=4, anneal_interval=6, epochs=1)][9:]
    assert rest == [3, 3] + [4] * 21


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 7), st.integers(1, 5))
def test_every_mini_batch_comes_once_and_m_survives_epochs(batches, maximum, interval, epochs):
    megas = list(mega_batches(batches, maximum, interval, epochs))
    for epoch in range(epochs):
        covered = [i for m in megas if m.epoch == epoch for i in range(m.start, m.stop)]
        assert covered == list(range(batches))
    sizes = [m.size for m in megas]
    assert all(0 <= b - a <= 1 for a, b in pairwise(sizes)) and max(sizes) <= maximum
    assert sizes[0] == (1 if interval else maximum)


def test_no_annealing_starts_with_the_largest():
    assert next(mega_batches(10, maximum=7, anneal_interval=0)) == MegaBatch(0, 0, 7, 7)


@pytest.mark.parametrize("rows", [[[1, 2], [2, 1], [1, 2], [1], [1, 1], [0], [0, 0]]])
def test_text_labels_are_equal_where_ids_are(rows):
    ids = np.array([i for row in rows for i in row], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    labels = text_labels(ids, offsets)
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            assert (labels[i] == labels[j]) == (a == b)
