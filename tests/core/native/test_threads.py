"""The pool of threads: it only grows, survives forks, and passes exceptions on."""

import multiprocessing
import sys
from pathlib import Path

import numpy as np
import pytest

from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="threads and limits as those of Linux")

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


@needs_linux
def test_loops_of_different_numbers_of_threads_start_none_anew():
    means(4)
    running = set(Path("/proc/self/task").iterdir())
    for threads in (2, 3, 4, 2, 4):
        means(threads)
        assert set(Path("/proc/self/task").iterdir()) == running


@needs_linux
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


def test_exceptions_in_threads_reach_the_caller():
    table, moments = np.ones((400, 4), np.float32), [np.zeros((400, 4), np.float32) for _ in range(2)]
    last_step, step, moves_from = np.full(400, 5), np.array(5), np.array(3)
    state = (table, *moments, last_step, step, np.ones((4, 264)), moves_from)
    training = kernels().TrainingStep(*state, 0.9, 0.999, 1e-8, 264)
    last_step[:] = 1
    for threads in (1, 2, 4, 2):
        with pytest.raises(SettingsError, match="last_step 1 of row"):
            training.catch_up(np.arange(400, dtype=np.int32), threads)
        assert np.array_equal(means(threads), means(1))
