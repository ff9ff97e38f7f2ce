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


@pytest.mark.parametrize("name", ["table", "ids", "offsets"])
def test_a_result_that_overwrites_what_is_read_is_refused(name):
    memory = np.zeros(24, np.float32)
    given = {
        "table": memory[3:15].reshape(4, 3),
        "ids": memory[:3].view(np.int32),
        "offsets": memory[:6].view(np.int64),
    }
    with pytest.raises(ValueError, match=r"shares its memory|do not grow"):
        means(**{name: given[name]}, out=memory[:6].reshape(2, 3))


def test_numbers_that_are_not_aligned_are_refused():
    with pytest.raises(ValueError, match="table is not aligned"):
        means(table=misaligned(np.ones((4, 3), np.float32)))


def test_a_table_of_a_file_that_is_not_aligned_is_read_by_torch():
    table = torch.nn.Embedding.from_pretrained(torch.from_numpy(misaligned(np.ones((4, 3), np.float32))))
    assert row_means(table, torch.tensor([0, 3]), torch.tensor([0, 2])).tolist() == [[1, 1, 1]]


def test_ids_of_a_store_need_not_be_aligned():
    ids, out = misaligned(np.arange(40, dtype=np.uint16) * 300), np.empty(3, np.int32)
    kernels().gather(ids, np.array([5]), np.array([0, 3]), out)
    assert out.tolist() == [1500, 1800, 2100]


@pytest.mark.parametrize("wrong", [2**32 + 1, -(2**32), 2**62, -1, 4])
def test_ids_beyond_32_bits_are_not_taken_for_others(wrong):
    table = torch.nn.Embedding.from_pretrained(torch.ones(4, 3))
    with pytest.raises(ValueError, match="row"):
        row_means(table, torch.tensor([0, wrong]), torch.tensor([0, 2]))


@pytest.mark.parametrize("limit", [-1, 2**40])
def test_a_table_of_words_has_a_size_that_it_can_count(vocabulary, limit):
    model = kernels().Unigram(vocabulary.content)
    with pytest.raises(ValueError, match="limit is not in"):
        kernels().WordCache(model, True, limit)
