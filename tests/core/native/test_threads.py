"""The pool of threads: too few of them, exceptions in them, forks."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from st_paragram.core.native import kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")
needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="limits as those of Linux")

TABLE = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
IDS, OFFSETS = np.arange(400, dtype=np.int32), np.arange(0, 401, 4)
MANY_THREADS = """
import numpy as np
from hostile.limits import Limits
from st_paragram.errors import SettingsError
from st_paragram.core.native import kernels

table, ids, offsets = np.ones((500, 8), np.float32), np.arange(400, dtype=np.int32), np.arange(0, 401, 4)

def means(threads):
    out = np.empty((100, 8), np.float32)
    kernels().mean_rows(table, ids, offsets, out, False, threads)
    return out

Limits(memory=300 << 20).impose()
try:
    means(200)
except SettingsError as error:
    print(error)
if (means(3) == 1).all():
    print("done")
"""
# Each thread needs as much memory as all need before they start: for long vectors, of which there are few.
LONG_VECTORS = """
import numpy as np
from hostile.limits import Limits, forked
from st_paragram.core.native import kernels

vectors = np.random.default_rng(1).normal(size=(48, 100_000)).astype(np.float32)
none, shares, found = np.empty(0, np.int64), np.empty(0, np.uint8), np.empty((2, 48), np.int64)

def search():
    kernels().hardest_negatives(vectors, vectors, none, none, shares, True, 2, *found)
    return True

for megabytes in (9, 19, 22, 25, 28, 200):
    ending = forked(search, Limits(memory=megabytes << 20), 20)
    in_loop = "not enough memory for the compiled kernels" in ending.text
    print(ending.outcome + " in the loop" * in_loop)
"""


def means(threads):
    out = np.empty((100, 8), np.float32)
    kernels().mean_rows(TABLE, IDS, OFFSETS, out, False, threads)
    return out


def printed(script):
    """The lines that a new process prints: one without memory or stacks left over from earlier tests."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@needs_limits
def test_threads_that_cannot_be_started_are_an_error_and_not_the_end():
    ending, *others = printed(MANY_THREADS)
    assert re.match(r"only \d+ of 200 threads could be started .*OMP_NUM_THREADS", ending), ending
    assert others == ["done"]  # fewer serve


@needs_limits
@pytest.mark.skipif(kernels() is None or not kernels().has_byte_products(), reason="needs 8-bit products")
def test_memory_that_runs_out_in_a_thread_is_an_error_of_the_caller():
    outcomes = printed(LONG_VECTORS)
    assert set(outcomes) <= {"done", "refused", "refused in the loop"}, outcomes
    assert "refused in the loop" in outcomes and outcomes[-1] == "done"


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
