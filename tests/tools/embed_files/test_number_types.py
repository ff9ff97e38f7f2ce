"""Rounding of embeddings, by hand and against plain formulas."""

import numpy as np
import pytest

from st_paragram.errors import ParagramError, SettingsError
from st_paragram.tools.embed_files.number_types import NumberType, pack, unpack


def test_int8_by_hand():
    rows = np.array([[2.54, -1.27, 0.015], [0, 0, 0], [1e-45, 0, 0]], np.float32)
    packed = pack(rows, NumberType.INT8, "x", 1)
    np.testing.assert_array_equal(packed.numbers, [[127, -64, 1], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(packed.scales, [0.02, 0, 0], rtol=1e-6)
    assert (packed.numbers.dtype, packed.scales.dtype) == (np.int8, np.float32)
    np.testing.assert_allclose(unpack(packed)[0], [2.54, -1.28, 0.02], rtol=1e-6)


@pytest.mark.parametrize("kind", NumberType)
def test_what_is_read_back_is_near(kind):
    rows = np.random.default_rng(0).normal(size=(50, 30)).astype(np.float32)
    back = unpack(pack(rows, kind, "x", 1))
    bound = {"float32": 0 * rows, "float16": np.abs(rows) / 2**11 + 1e-7}
    half_a_step = np.abs(rows).max(axis=1, keepdims=True) / 127 / 2 * 1.0001 + 0 * rows
    assert back.dtype == np.float32 and (np.abs(back - rows) <= bound.get(kind.value, half_a_step)).all()


def test_what_cannot_be_stored_is_told_by_line():
    rows = np.ones((3, 2), np.float32)
    rows[1, 1] = np.nan
    for kind in NumberType:
        with pytest.raises(ParagramError, match=r"a\.txt: the embedding of line 12 is not finite"):
            pack(rows, kind, "a.txt", 11)
    rows[1, 1] = 70_000
    with pytest.raises(SettingsError, match="line 12 has components above 65,504, which float16 cannot hold"):
        pack(rows, NumberType.FLOAT16, "a.txt", 11)
