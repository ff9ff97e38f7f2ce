"""Sentences copied out of a store's ids, compared with plain slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")


@given(st.sampled_from([np.uint8, np.uint16, np.uint32]), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10))))
def test_equals_slices(dtype, sentences):
    ids = (np.arange(50) * 5).astype(dtype)
    begins, counts = np.array(sentences, np.int64).reshape(-1, 2).T
    offsets = np.concatenate([[0], np.cumsum(counts)])
    out = np.empty(offsets[-1], np.int32)
    kernels().gather(ids, np.ascontiguousarray(begins), offsets, out)
    assert out.tolist() == [int(i) for begin, count in sentences for i in ids[begin : begin + count]]


@pytest.mark.parametrize(
    ("begins", "offsets", "size", "message"),
    [
        ([0], [0, 3, 4], 4, "offsets do not fit"),
        ([-1], [0, 3], 3, "a sentence outside ids"),
        ([8], [0, 3], 3, "a sentence outside ids"),
    ],
)
def test_what_would_read_elsewhere_is_refused(begins, offsets, size, message):
    with pytest.raises(ValueError, match=message):
        kernels().gather(np.zeros(10, np.uint8), np.array(begins), np.array(offsets), np.empty(size, np.int32))
