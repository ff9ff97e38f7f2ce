"""Tables in huge pages are tensors like others."""

from __future__ import annotations

import copy
import gc
import mmap
import pickle

import pytest
import torch

from st_paragram.learning.modules import huge_pages

LARGE = (3000, 1024)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8, torch.int64])
@pytest.mark.parametrize("shape", [(), (0,), (7, 0), (5,), (3, 4, 5), LARGE])
def test_empty_has_the_shape_and_type_asked_for(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = huge_pages.empty(shape, dtype)
    assert tensor.shape == shape
    assert tensor.dtype == dtype
    assert tensor.is_contiguous()
    assert tensor.device.type == "cpu"
    tensor.fill_(3)
    assert (tensor == 3).all()


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="a system without huge pages")
def test_large_tensors_begin_at_a_huge_page() -> None:
    assert huge_pages.empty(LARGE).data_ptr() % (1 << 21) == 0


def test_the_memory_lives_as_long_as_its_views() -> None:
    view = huge_pages.empty(LARGE).fill_(5)[1000:1001]
    gc.collect()
    others = [huge_pages.empty(LARGE).fill_(7) for _ in range(3)]
    assert (view == 5).all()
    assert all((other == 7).all() for other in others)


def test_copies_are_tensors_of_their_own() -> None:
    source = torch.randn(LARGE)
    tensor = huge_pages.copy_of(source)
    for other in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), tensor.clone()):
        other[0, 0] = 100
        assert torch.equal(tensor, source)
    parameter = torch.nn.Parameter(tensor)
    parameter.sum().backward()
    assert parameter.grad is not None


def test_ordinary_memory_where_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> mmap.mmap:
        raise OSError("cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert huge_pages.empty(LARGE).fill_(1).sum() == LARGE[0] * LARGE[1]
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert huge_pages.empty(LARGE).shape == LARGE
