"""Heaps of texts in HDF5 files, in which libhdf5 would never come to an end."""

import h5py
import pytest
from support.data import write_store

from st_paragram.core.pair_store import PairStore
from st_paragram.core.pair_store.hdf5 import check_heaps
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


def test_sound_heaps(tmp_path):
    with h5py.File(tmp_path / "y.h5", "w") as file:
        for number in range(300):
            file.attrs[f"{number}"] = "x" * (number * 7 % 90)
    assert len(_heaps(tmp_path / "y.h5")) > 3
    check_heaps(tmp_path / "y.h5", [])


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (lambda begin, end: (begin + 16, bytes(end - begin - 16)), "a heap of texts is damaged"),
        (lambda begin, end: (begin + 24, b"\xff" * 8), "not a readable pair store"),
        (lambda begin, end: (begin + 8, b"\xff" * 8), "not a readable pair store"),
    ],
)
def test_zeros_and_wrong_sizes_are_refused_in_all_heaps(path, place, message):
    whole = path.read_bytes()
    assert len(_heaps(path)) > 1
    for heap in _heaps(path):
        begin, content = place(*heap)
        path.write_bytes(whole[:begin] + content + whole[begin + len(content) :])
        with pytest.raises(StoreError, match=message) as caught:
            PairStore(path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_arrays_are_left_out(path):
    with h5py.File(path, "r+") as file:
        position = file["a/offsets"].id.get_offset()
    with path.open("r+b") as file:
        file.seek(position)
        file.write(b"GCOL\1\0\0\0" + bytes(8))
    with pytest.raises(StoreError, match="offsets"):
        PairStore(path)
