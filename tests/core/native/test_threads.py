"""The pool of threads: any number gives the same, and it survives forks."""

import multiprocessing
import sys

import numpy as np
import pytest

from st_paragram.core.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")

TABLE = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
IDS, OFFSETS = np.arange(400, dtype=np.int32), np.arange(0, 401, 4)


def means(threads):
    out = np.empty((100, 8), np.float32)
    kernels().mean_rows(TABLE, IDS, OFFSETS, out, False, threads)
    return out


def test_any_number_of_threads_gives_the_same():
    expected = means(1)
    for threads in (-(2**31), 0, 2, 7, 2**31 - 1, 2):
        assert np.array_equal(means(threads), expected)


@pytest.mark.skipif(sys.platform != "linux", reason="forks are those of Linux")
def test_a_forked_process_makes_a_pool_of_its_own():
    expected = means(3)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put([means(threads) for threads in (3, 2)]))
    child.start()
    assert np.array_equal(queue.get(), [expected, expected])
    child.join(10)
    assert child.exitcode == 0
    assert np.array_equal(means(3), expected)
