"""Tables of 4-bit integers: packing by hand, the best scales, and reading."""

from __future__ import annotations

import numpy as np
import pytest

from st_paragram.core.embedding_table import Table, TableType
from st_paragram.core.quantization import from_int4, to_int4
from st_paragram.errors import SettingsError


def test_packing_by_hand():
    rows = np.array([[7, -7, 1, 0], [-2, 3.4, 14, -14], [0, 0, 0, 0]], np.float32)
    packed, scales = to_int4(rows)
    # 7 and -7 (binary 1001): 0x97; 1 and 0: 0x01. In the second row, steps of 2: -1, 2, 7, -7.
    assert packed.tolist() == [[0x97, 0x01], [0x2F, 0x97], [0, 0]]
    best = (2 + 2 * 3.4 + 7 * 14 * 2) / (1 + 4 + 49 * 2)
    np.testing.assert_allclose(scales, [1, best, 0], rtol=1e-6)
    assert from_int4(packed).tolist() == [[7, -7, 1, 0], [-1, 2, 7, -7], [0, 0, 0, 0]]
    assert from_int4(np.array([0x80, 0x08], np.uint8)).tolist() == [0, -8, -8, 0]


def test_the_scale_is_the_best_of_those_tried(rng):
    """And rows like those of trained tables lose a quarter less than with the largest component
    over seven.
    """
    rows = rng.standard_normal((200, 300)).astype(np.float32)
    packed, scales = to_int4(rows)
    found = ((from_int4(packed) * scales[:, None] - rows) ** 2).sum(axis=1)
    step = np.abs(rows).max(axis=1, keepdims=True) / 7
    steps = [share * step for share in np.linspace(0.3, 1.1, 161)]
    fine = np.stack(
        [((np.clip(np.rint(rows / each), -7, 7) * each - rows) ** 2).sum(axis=1) for each in steps]
    )
    assert (found <= 1.06 * fine.min(axis=0)).all() and found.sum() < 1.01 * fine.min(axis=0).sum()
    assert found.sum() < 0.75 * ((np.rint(rows / step) * step - rows) ** 2).sum()


def test_odd_numbers_of_components_are_refused():
    with pytest.raises(SettingsError, match="two dimensions per byte, but the table has 5"):
        Table(np.ones((3, 5), np.float32)).converted(TableType.INT4)


def test_other_types_hold_the_same_numbers(rng):
    table = Table(rng.standard_normal((1500, 6)).astype(np.float32)).converted(TableType.INT4)
    assert (table.kind, table.dimension, len(table), table.weight.shape) == (
        TableType.INT4,
        6,
        1500,
        (1500, 3),
    )
    wide = table.converted(TableType.INT8)
    assert wide.scale is table.scale and np.abs(wide.weight).max() == 7
    for kind in (TableType.INT8, TableType.FLOAT32):
        np.testing.assert_array_equal(
            table.converted(kind).rows(slice(None)), table.rows(slice(None))
        )
    np.testing.assert_array_equal(
        table.converted(TableType.FLOAT32).converted(TableType.INT4).weight, table.weight
    )
    np.testing.assert_array_equal(table.rows([[3], [5]]), table.rows([3, 5])[:, None])


@pytest.mark.parametrize(
    ("dimension", "kind"), [(4, TableType.INT4), (3, TableType.INT8), (6, TableType.INT4)]
)
def test_the_first_components(rng, dimension, kind):
    table = Table(rng.standard_normal((20, 6)).astype(np.float32)).converted(TableType.INT4)
    part = table.truncated(dimension)
    assert (part.kind, part.dimension) == (kind, dimension)
    np.testing.assert_array_equal(part.rows(slice(None)), table.rows(slice(None))[:, :dimension])
