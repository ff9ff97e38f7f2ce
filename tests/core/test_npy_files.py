"""Arrays in files that are damaged or a stranger's."""

import io

import numpy as np
import pytest

from st_paragram.core.npy_files import map_npy, read_npz


@pytest.mark.parametrize("shape", [(3, 4), (0, 4)])
def test_what_numpy_writes_is_mapped(tmp_path, shape):
    array = np.arange(np.prod(shape), dtype=np.float16).reshape(shape)
    np.save(tmp_path / "x.npy", array)
    mapped = map_npy(tmp_path / "x.npy", ("float16", "int8"), 2)
    np.testing.assert_array_equal(mapped, array)
    assert mapped.dtype == np.float16 and mapped.shape == shape


def saved(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


def header(text):
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text.encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no header"),
        (b"\x93NUMPY\x01\x00\x10\x00{", "no header"),
        (header("{'descr': '<i8', 'fortran_order': False, 'shape': (1"), "no header"),
        (header("("), "no header"),
        (header("(" * 5000), "no header"),
        (header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}") + bytes(8), r"shape \(-1,\)"),
        (header(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({10**30},)}}"), "8 bytes|asks for"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + bytes(8), "type object"),
        (saved(np.arange(3, dtype=">i8")), "type int64 .*>i8"),
        (saved(np.arange(3, dtype=np.uint64)), "type uint64"),
        (saved(np.zeros((2, 2), np.int64)), r"shape \(2, 2\)"),
        (saved(np.arange(3))[:-1], "23 bytes of numbers where its header asks for 24"),
        (saved(np.arange(3)) + b"x", "25 bytes of numbers where its header asks for 24"),
        (saved(np.asfortranarray(np.zeros((2, 3), np.int64))), "by columns"),
    ],
)
def test_what_is_refused_is_refused_in_a_line(tmp_path, data, message):
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        map_npy(tmp_path / "x.npy", ("int64",), 1)
    assert "\n" not in str(caught.value)


def test_arrays_of_an_npz_come_back(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(6).reshape(2, 3), b=np.float32([1.5]))
    a, b = read_npz(tmp_path / "x.npz", ("a", "b"), ("int64", "float32"))
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]] and b.tolist() == [1.5]


@pytest.mark.parametrize("begin", range(0, 300, 30))
def test_a_damaged_npz_is_refused(tmp_path, begin):
    np.savez(tmp_path / "x.npz", a=np.arange(6))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[begin : begin + 30] = bytes(byte ^ 0x55 for byte in data[begin : begin + 30])
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(ValueError):
        read_npz(tmp_path / "x.npz", ("a",), ("int64",))
    (tmp_path / "x.npz").write_bytes(data[:begin])
    with pytest.raises(ValueError):
        read_npz(tmp_path / "x.npz", ("a",), ("int64",))


def test_compressed_and_missing_arrays_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(10**6))
    with pytest.raises(ValueError, match="compressed"):
        read_npz(tmp_path / "x.npz", ("a",), ("float64",))
    with pytest.raises(ValueError, match="no item named"):
        read_npz(tmp_path / "x.npz", ("b",), ("float64",))
