"""The pool of threads: too few of them, exceptions in them, forks."""

import sys
from pathlib import Path

import numpy as np
import pytest

from st_paragram.errors import SettingsError
from st_paragram.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")
needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="limits as those of Linux")

TABLE = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
IDS, OFFSETS = np.arange(400, dtype=np.int32), np.arange(0, 401, 4)


def means(threads):
    out = np.empty((100, 8), np.float32)
    kernels().mean_rows(TABLE, IDS, OFFSETS, out, False, threads)
    return out


def search(vectors, threads):
    """Each thread needs as much memory as all need before they start: long vectors, and few of them."""
    none, found = np.empty(0, np.int64), np.empty((2, len(vectors)), np.int64)
    kernels().hardest_negatives(vectors, vectors, none, none, np.empty(0, np.uint8), True, threads, *found)
    return True


@needs_limits
def test_threads_that_cannot_be_started_are_an_error_and_not_the_end():
    from hostile.limits import Limits, forked

    def job():
        with pytest.raises(SettingsError, match=r"^only \d+ of 200 threads could be started .*OMP_NUM_THREADS"):
            means(200)
        return np.array_equal(means(3), expected)  # fewer serve

    expected = means(1)
    ending = forked(job, Limits(memory=300 << 20), seconds=20)
    assert ending.outcome == "done", ending


@needs_limits
@pytest.mark.skipif(kernels() is None or not kernels().has_byte_products(), reason="needs 8-bit products")
def test_memory_that_runs_out_in_a_thread_is_an_error_of_the_caller():
    from hostile.limits import Limits, forked

    vectors = np.random.default_rng(1).normal(size=(48, 100_000)).astype(np.float32)
    sizes = range(16, 40, 3)
    endings = [forked(lambda: search(vectors, 2), Limits(memory=megabytes << 20), 20) for megabytes in sizes]
    assert {ending.outcome for ending in endings} <= {"done", "refused"}, endings
    assert any("not enough memory for the compiled kernels" in ending.text for ending in endings)


@needs_limits
def test_a_forked_process_makes_a_pool_of_its_own():
    from hostile.limits import Limits, forked

    expected = means(3)
    assert (
        forked(lambda: np.array_equal(means(3), expected) and np.array_equal(means(2), expected), Limits()).outcome
        == "done"
    )
    assert np.array_equal(means(3), expected)


def test_any_number_of_threads_gives_the_same():
    expected = means(1)
    for threads in (-(2**31), 0, 2, 7, 2**31 - 1, 2):
        assert np.array_equal(means(threads), expected)


def test_threads_can_be_tried():
    before = len(list(Path("/proc/self/task").iterdir())) if sys.platform == "linux" else 0
    kernels().try_threads(20)
    assert sys.platform != "linux" or len(list(Path("/proc/self/task").iterdir())) <= before
