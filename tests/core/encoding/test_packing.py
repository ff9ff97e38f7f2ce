"""Rounding of embeddings, by hand and against plain formulas."""

import numpy as np
import pytest

from st_paragram.core.encoding.packing import NumberType, Packed, pack, unpack


def test_int8_by_hand():
    rows = np.array([[2.54, -1.27, 0.015], [0, 0, 0], [1e-45, 0, 0]], np.float32)
    packed = pack(Packed(rows), NumberType.INT8)
    np.testing.assert_array_equal(packed.numbers, [[127, -64, 1], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(packed.scales, [0.02, 0, 0], rtol=1e-6)
    assert (packed.numbers.dtype, packed.scales.dtype) == (np.int8, np.float32)
    np.testing.assert_allclose(unpack(packed)[0], [2.54, -1.28, 0.02], rtol=1e-6)


@pytest.mark.parametrize("kind", NumberType)
def test_what_is_read_back_is_near(kind):
    rows = np.random.default_rng(0).normal(size=(50, 30)).astype(np.float32)
    back = unpack(pack(Packed(rows), kind))
    bound = {"float32": 0 * rows, "float16": np.abs(rows) / 2**11 + 1e-7}
    half_a_step = np.abs(rows).max(axis=1, keepdims=True) / 127 / 2 * 1.0001 + 0 * rows
    assert back.dtype == np.float32 and (np.abs(back - rows) <= bound.get(kind.value, half_a_step)).all()


def test_one_type_becomes_another_in_blocks():
    rows = np.random.default_rng(0).normal(size=(2500, 3)).astype(np.float32)
    integers = pack(Packed(rows), NumberType.INT8)
    assert pack(integers, NumberType.INT8) is integers
    floats = integers.numbers * integers.scales[:, None]
    np.testing.assert_array_equal(pack(integers, NumberType.FLOAT32).numbers, floats)
    np.testing.assert_array_equal(pack(integers, NumberType.FLOAT16).numbers, floats.astype(np.float16))
    out = np.empty((2, 3), np.float32)
    assert unpack(integers[[2400, 7]], out) is out and (out == floats[[2400, 7]]).all()
