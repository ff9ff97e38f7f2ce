"""Tables: types, rounding by hand, and means against plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.core.embedding_table import Table, TableType, normalize
from st_paragram.errors import SettingsError


def test_int8_by_hand():
    table = Table(np.array([[1.0, -2.0, 0.5], [0, 0, 0], [127, 1, -63.5]], np.float32)).converted(
        TableType.INT8
    )
    # halves to the even number
    assert table.weight.tolist() == [[64, -127, 32], [0, 0, 0], [127, 1, -64]]
    np.testing.assert_allclose(table.scale, [2 / 127, 0, 1])
    np.testing.assert_allclose(
        table.rows([0, 2]), [[128 / 127, -2, 64 / 127], [127, 1, -64]], rtol=1e-6
    )


def test_what_does_not_fit_float16_is_refused():
    with pytest.raises(SettingsError, match=r"65,504"):
        Table(np.full((2, 2), 1e6, np.float32)).converted(TableType.FLOAT16)
    with pytest.raises(SettingsError, match="choose float32, float16, int8, int4"):
        TableType.of("int2")


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 11), max_size=9), max_size=12),
    st.sampled_from(list(TableType)),
    st.booleans(),
    st.integers(1, 20),
    st.booleans(),
)
def test_means_against_plain_arithmetic(texts, kind, normalized, dimension, native):
    dimension += dimension % 2 if kind is TableType.INT4 else 0
    rows = np.random.default_rng(dimension).standard_normal((12, dimension)).astype(np.float32)
    table = Table(rows).converted(kind)
    ids = np.array([each for text in texts for each in text], np.int64)
    offsets = np.cumsum([0, *map(len, texts)])
    if native:
        found = table.means(ids, offsets, normalized, 2)
    else:
        found = np.empty((len(texts), dimension), np.float32)
        table._means_in_numpy(ids, offsets, found)
        found = normalize(found) if normalized else found
    exact = table.rows(np.arange(12)).astype(np.float64)
    for text, row in zip(texts, found, strict=True):
        mean = exact[text].mean(axis=0) if text else np.zeros(dimension)
        length = np.linalg.norm(mean)
        if normalized and text:
            assert length < 1e-6 or np.allclose(row, mean / length, atol=1e-5)
        else:
            np.testing.assert_allclose(row, mean, atol=1e-5)


@pytest.mark.parametrize("ids", [[0, 4], [-1], [2**40]])
@pytest.mark.parametrize("native", [True, False])
def test_ids_outside_the_table_are_refused(ids, native, monkeypatch):
    if not native:
        monkeypatch.setattr("st_paragram.core.embedding_table.kernels", lambda: None)
    table = Table(np.zeros((4, 2), np.float32))
    with pytest.raises(ValueError, match=r"ids? (from )?-?\d"):
        table.means(np.array(ids), np.array([0, len(ids)]))
