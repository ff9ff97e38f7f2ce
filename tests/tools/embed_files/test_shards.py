"""Shards: arrays are what numpy writes, other arrays are refused, and rows are those of all shards together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.encoding.packing import NumberType, Packed, pack, unpack
from st_paragram.tools.embed_files.shards import (
    ShardedRows,
    ShardShape,
    map_array,
    shard_files,
    shard_reader,
    shard_writer,
    write_array,
)


class Halves(ShardedRows):
    """Matrices in memory, whose rows are halved when they are read."""

    dim = 2

    def __init__(self, parts):
        self._parts = parts

    @property
    def starts(self):
        return np.cumsum([0, *map(len, self._parts)])

    def fill(self, out, shard, rows):
        out[...] = self._parts[shard][rows] / 2


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_rows_across_shards(sizes, data):
    whole = np.arange(2 * sum(sizes), dtype=np.float32).reshape(-1, 2)
    halves = Halves(np.split(whole, np.cumsum(sizes)[:-1]))
    assert len(halves) == len(whole)
    begin, end = sorted(data.draw(st.integers(0, len(whole))) for _ in range(2))
    np.testing.assert_array_equal(halves.rows(begin, end), whole[begin:end] / 2)
    picks = np.array(data.draw(st.lists(st.integers(0, len(whole) - 1))), np.int64)
    np.testing.assert_array_equal(halves.take(picks), whole[picks] / 2)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_an_array_in_parts_is_what_numpy_saves(tmp_path, dtype):
    whole = np.arange(12).reshape(4, 3).astype(dtype)
    np.save(tmp_path / "one.npy", whole)
    with write_array(tmp_path / "parts.npy", dtype, whole.shape) as write:
        write(whole[:1])
        write(whole[1:])
    assert (tmp_path / "parts.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()
    np.testing.assert_array_equal(map_array(tmp_path / "one.npy", dtype, (4, 3)), whole)
    for wanted in ((dtype, (3, 4)), (dtype, (12,)), ("float32", (4, 3))):
        with pytest.raises(ValueError, match=r"where .* expected"):
            map_array(tmp_path / "one.npy", *wanted)


@pytest.mark.parametrize("kind", NumberType)
@pytest.mark.parametrize("form", ["npy", "parquet"])
def test_a_shard_is_read_as_it_was_written(tmp_path, kind, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    packed = pack(Packed(np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)), kind)
    path, shape = tmp_path / f"a.{form}", ShardShape(9, 4, kind, form == "parquet")
    with shard_writer(path, shape) as write:
        for part in (slice(0, 5), slice(5, 9)):
            write(packed[part], list("abcdefghi")[part])
    assert sorted(tmp_path.iterdir()) == sorted(shard_files(path, kind))
    shard = shard_reader(path, shape)
    for rows in (slice(3, 7), np.array([8, 0, 5])):
        np.testing.assert_array_equal(unpack(shard[rows]), unpack(packed[rows]))
    if form == "parquet":
        assert shard.texts(slice(4, 6)) == ["e", "f"]
    with pytest.raises(ValueError, match="expected"):
        shard_reader(path, ShardShape(8, 4, kind, form == "parquet"))
