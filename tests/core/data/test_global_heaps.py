"""Heaps of texts in HDF5 files."""

import h5py
import pytest
from support.data import write_store

from st_paragram.core.data.pair_store import PairStore
from st_paragram.core.data.pair_store.global_heaps import check_heaps
from st_paragram.errors import StoreError


@pytest.fixture
def path(tmp_path, pairs, vocabulary):
    """A store with a heap for what is long."""
    return write_store(tmp_path / "x.h5", pairs[:20], vocabulary, note="é" * 9_000).path


def _heaps(path):
    content, found, begin = path.read_bytes(), [], 0
    while (begin := content.find(b"GCOL", begin)) >= 0:
        found.append((begin, begin + int.from_bytes(content[begin + 8 : begin + 16], "little")))
        begin += 1
    return found


def _overwrite(path, begin, content):
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(content)


def test_sound_heaps(path, tmp_path):
    assert len(_heaps(path)) > 1
    check_heaps(path, [])
    with h5py.File(tmp_path / "y.h5", "w") as file:
        for number in range(300):
            file.attrs[f"{number}"] = "x" * (number * 7 % 90)
    assert len(_heaps(tmp_path / "y.h5")) > 3
    check_heaps(tmp_path / "y.h5", [])


def test_zeros_and_wrong_sizes_are_refused_in_all_heaps(path):
    """libhdf5 would never come to an end."""
    whole = path.read_bytes()
    for begin, end in _heaps(path):
        for place, content in (
            (begin + 16, bytes(end - begin - 16)),
            (begin + 24, b"\xff" * 8),
            (begin + 8, b"\xff" * 8),
        ):
            path.write_bytes(whole)
            _overwrite(path, place, content)
            with pytest.raises(StoreError, match="a heap of texts") as caught:
                PairStore(path)
            assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_arrays_are_left_out(path):
    with h5py.File(path) as file:
        position = file["a/offsets"].id.get_offset()
    _overwrite(path, position, b"GCOL\1\0\0\0" + bytes(8))
    with pytest.raises(StoreError, match="offsets"):
        PairStore(path)
