"""Tables in huge pages are tensors like others."""

import gc
import mmap

import pytest
import torch

from st_paragram.learning.modules import huge_pages

LARGE = (3000, 1024)


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="a system without huge pages")
def test_large_copies_begin_at_a_huge_page_and_own_their_memory():
    source = torch.randn(LARGE)
    copy = huge_pages.copy_of(source)
    assert copy.data_ptr() % (1 << 21) == 0
    part = copy[1000:1001]
    del copy
    gc.collect()
    others = [huge_pages.empty(LARGE).fill_(7) for _ in range(3)]
    assert torch.equal(part, source[1000:1001]) and all((other == 7).all() for other in others)


def test_ordinary_memory_where_the_system_refuses(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert huge_pages.empty(LARGE).fill_(1).sum() == LARGE[0] * LARGE[1]
