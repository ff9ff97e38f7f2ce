"""What no kernel takes, whichever it is: memory that is read-only, shared or not aligned, and ids beyond 32 bits."""

import numpy as np
import pytest
import torch

from st_paragram.core.native import kernels
from st_paragram.learning.modules.mean_pool import row_means

pytestmark = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")


def means(table=None, ids=None, offsets=None, out=None):
    table = np.ones((4, 3), np.float32) if table is None else table
    ids = np.array([0, 1, 2], np.int32) if ids is None else ids
    offsets = np.array([0, 1, 3]) if offsets is None else offsets
    kernels().mean_rows(table, ids, offsets, np.empty((2, 3), np.float32) if out is None else out, False, 1)


def misaligned(array):
    memory = np.empty(array.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(array.tobytes(), np.uint8)
    return np.ndarray(array.shape, array.dtype, buffer=memory)


def test_what_is_read_only_is_not_written_to():
    out = np.empty((2, 3), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        means(out=out)


def test_numbers_that_are_not_aligned_are_refused():
    with pytest.raises(ValueError, match="table is not aligned"):
        means(table=misaligned(np.ones((4, 3), np.float32)))


@pytest.mark.parametrize("wrong", [2**32 + 1, -(2**32), 2**62, -1, 4])
def test_ids_beyond_32_bits_are_not_taken_for_others(wrong):
    table = torch.nn.Embedding.from_pretrained(torch.ones(4, 3))
    with pytest.raises(ValueError, match="row"):
        row_means(table, torch.tensor([0, wrong]), torch.tensor([0, 2]))
