"""What kernels copy and select, and what none of them takes: memory and ids that would be read or
written elsewhere.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")

F32 = np.float32


def means(table, out):
    kernels().mean_rows(table, np.array([0, 1, 2], np.int32), np.array([0, 1, 3]), out, False, 1)


def test_what_is_read_only_or_not_aligned_is_refused():
    table, out = np.ones((4, 3), F32), np.empty((2, 3), F32)
    misaligned = np.ndarray((4, 3), F32, buffer=np.zeros(49, np.uint8)[1:])
    with pytest.raises(ValueError, match="table is not aligned"):
        means(misaligned, out)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        means(table, out)


@pytest.mark.parametrize("wrong", [2**32 + 1, -(2**32), 2**62, -1, 4])
def test_ids_beyond_32_bits_are_not_taken_for_others(wrong):
    torch = pytest.importorskip("torch")
    from st_paragram.learning.modules.mean_pool import row_means

    table = torch.nn.Embedding.from_pretrained(torch.ones(4, 3))
    with pytest.raises(ValueError, match="row"):
        row_means(table, torch.tensor([0, wrong]), torch.tensor([0, 2]))


@given(
    st.sampled_from([np.uint8, np.uint16, np.uint32]),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10))),
)
def test_sentences_of_a_store_are_slices(dtype, sentences):
    ids = (np.arange(50) * 5).astype(dtype)
    begins, counts = np.array(sentences, np.int64).reshape(-1, 2).T
    offsets = np.concatenate([[0], np.cumsum(counts)])
    out = np.empty(offsets[-1], np.int32)
    kernels().gather(ids, np.ascontiguousarray(begins), offsets, out)
    assert out.tolist() == [
        int(i) for begin, count in sentences for i in ids[begin : begin + count]
    ]


@pytest.mark.parametrize(
    ("begins", "offsets", "message"),
    [
        ([0], [0, 3, 4], "offsets do not fit"),
        ([-1], [0, 3], "a sentence outside ids"),
        ([8], [0, 3], "a sentence outside ids"),
    ],
)
def test_sentences_outside_a_store_are_refused(begins, offsets, message):
    out = np.empty(offsets[-1], np.int32)
    with pytest.raises(ValueError, match=message):
        kernels().gather(np.zeros(10, np.uint8), np.array(begins), np.array(offsets), out)


@pytest.mark.parametrize(
    ("shard", "rows", "message"),
    [
        (np.zeros((4, 4), F32), np.full((2, 5), 4), "row 4 is not among the vectors"),
        (np.zeros((4, 4), F32), np.zeros((3, 5), np.int64), "rows has another shape"),
        (
            np.zeros((4, 8), F32)[:, ::2],
            np.zeros((2, 5), np.int64),
            "shards differ in type or are not contiguous",
        ),
    ],
)
def test_candidates_outside_the_vectors_are_refused(shard, rows, message):
    with pytest.raises(ValueError, match=message):
        kernels().candidate_cosines(
            np.zeros((2, 4), F32), [shard], np.ones(4, F32), rows, np.zeros((2, 5), F32), 1
        )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("of_columns", [True, False])
def test_the_best_of_many_columns_by_any_number_of_threads(threads, of_columns):
    """More columns than a thread is given at a time: one thread alone is given all of them."""
    tile = np.random.default_rng(0).standard_normal((700, 1500)).astype(F32)
    rows = 1500 if of_columns else 700
    values, ids = np.full((rows, 3), -np.inf, F32), np.full((rows, 3), -1, np.int64)
    kernels().keep_best(tile, 10, values, ids, of_columns, threads)
    table = tile.T if of_columns else tile
    expected = np.argsort(-table, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(ids, expected + 10)
    np.testing.assert_array_equal(values, np.take_along_axis(table, expected, axis=1))
