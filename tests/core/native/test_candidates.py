"""What the kernels of a search refuse; what they compute is compared in tests/tools/neighbors/test_exact.py."""

import numpy as np
import pytest

from st_paragram.core.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")

F32, I64 = np.float32, np.int64


def cosines(**changes):
    given = {
        "queries": np.zeros((2, 4), F32),
        "shards": [np.zeros((3, 4), F32), np.zeros((1, 4), F32)],
        "lengths": np.ones(4, F32),
        "rows": np.zeros((2, 5), I64),
        "out": np.zeros((2, 5), F32),
    } | changes
    kernels().candidate_cosines(*given.values(), 1)
    return given["out"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": np.full((2, 5), 4)}, "row 4 is not among the vectors"),
        ({"rows": np.zeros((3, 5), I64)}, "rows has another shape"),
        ({"shards": [np.zeros((4, 8), F32)[:, ::2]]}, "shards differ in type or are not contiguous"),
    ],
)
def test_what_would_read_elsewhere_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        cosines(**changes)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("of_columns", [True, False])
def test_the_best_of_many_columns_by_any_number_of_threads(threads, of_columns):
    """More columns than a thread is given at a time: one thread alone is given all of them."""
    tile = np.random.default_rng(0).standard_normal((700, 1500)).astype(F32)
    rows = 1500 if of_columns else 700
    values, ids = np.full((rows, 3), -np.inf, F32), np.full((rows, 3), -1, I64)
    kernels().keep_best(tile, 10, values, ids, of_columns, threads)
    table = tile.T if of_columns else tile
    expected = np.argsort(-table, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(ids, expected + 10)
    np.testing.assert_array_equal(values, np.take_along_axis(table, expected, axis=1))
