"""Shards as Parquet tables, which databases and data-frame libraries read; they need pyarrow (extra `parquet`).

Columns: `text` (string) if it is asked for, `embedding` (a list of D numbers), and for int8 `scale` (float32).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import NumberType, Packed
from st_paragram.core.extras import require
from st_paragram.core.files import atomic
from st_paragram.errors import SettingsError
from st_paragram.tools.embed_files.npy_shards import ShardShape, Write

_PURPOSE = "a Parquet table"


def arrow() -> Any:  # noqa: ANN401 - pyarrow has no types
    """The package pyarrow.

    Raises:
        MissingExtraError: It is not installed.
    """
    return require("pyarrow", "parquet", _PURPOSE)


@contextmanager
def write_parquet(path: Path, shape: ShardShape) -> Iterator[Write]:
    """Open a Parquet table; each batch that is written becomes a row group."""
    pa, parquet = arrow(), require("pyarrow.parquet", "parquet", _PURPOSE)
    schema = _schema(shape)
    options = {
        # Parquet stores 8-bit integers in 32 bits, except through a dictionary, which then has at most 255 entries.
        "use_dictionary": shape.dtype is NumberType.INT8,
        "compression": {"text": "zstd"} if shape.with_text else "none",
        "write_statistics": False,
    }
    with atomic(path) as file, parquet.ParquetWriter(file, schema, **options) as writer:

        def write(packed: Packed, texts: Sequence[str]) -> None:
            values = pa.array(packed.numbers.reshape(-1))
            columns = [pa.FixedSizeListArray.from_arrays(values, type=schema.field("embedding").type)]
            if shape.with_text:
                columns.insert(0, pa.array(texts, pa.string()))
            if packed.scales is not None:
                columns.append(pa.array(packed.scales))
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))

        yield write


def _schema(shape: ShardShape) -> Any:  # noqa: ANN401 - pyarrow has no types
    pa = arrow()
    numbers = {"float32": pa.float32(), "float16": pa.float16(), "int8": pa.int8()}[shape.dtype.value]
    fields = [pa.field("embedding", pa.list_(pa.field("element", numbers, nullable=False), shape.dimension), False)]
    if shape.with_text:
        fields.insert(0, pa.field("text", pa.string(), False))
    if shape.dtype is NumberType.INT8:
        fields.append(pa.field("scale", pa.float32(), False))
    return pa.schema(fields)


class ParquetShard:
    """A Parquet table; only the row groups that are asked for are read."""

    def __init__(self, path: Path, shape: ShardShape) -> None:
        """Open it.

        Raises:
            OSError: It cannot be read.
            ValueError: It holds something else than it should.
        """
        self._file = require("pyarrow.parquet", "parquet", _PURPOSE).ParquetFile(path, memory_map=True)
        self._shape = shape
        found, wanted = self._file.schema_arrow, _schema(shape)
        if not found.equals(wanted):
            columns = ", ".join(f"{field.name}: {field.type}" for field in found)
            raise ValueError(f"a table with columns ({columns}) that differ from its description")
        metadata = self._file.metadata
        if metadata.num_rows != shape.rows:
            raise ValueError(f"{metadata.num_rows} rows where {shape.rows} are expected")
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])

    def take(self, rows: slice | NDArray[Any]) -> Packed:
        """Embeddings of neighboring rows, or of rows by their numbers."""
        wanted = np.arange(self._shape.rows)[rows]
        numbers = np.empty((len(wanted), self._shape.dimension), self._shape.dtype.value)
        scales = np.empty(len(wanted), np.float32) if self._shape.dtype is NumberType.INT8 else None
        groups = np.searchsorted(self._starts, wanted, side="right") - 1
        for group in np.unique(groups):
            places = np.flatnonzero(groups == group)
            inside = wanted[places] - self._starts[group]
            table = self._columns(int(group), ["embedding", "scale"])
            values = table.column("embedding").combine_chunks().flatten().to_numpy()
            numbers[places] = values.reshape(-1, self._shape.dimension)[inside]
            if scales is not None:
                scales[places] = table.column("scale").to_numpy()[inside]
        return Packed(numbers, scales)

    def texts(self, rows: slice) -> list[str]:
        """The lines of neighboring rows.

        Raises:
            SettingsError: They were not kept.
        """
        if not self._shape.with_text:
            raise SettingsError("these embeddings have no lines; embed with --with-text")
        begin, end, _ = rows.indices(self._shape.rows)
        lines: list[str] = []
        for group, first in enumerate(self._starts[:-1]):
            if first < end and self._starts[group + 1] > begin:
                found = self._columns(group, ["text"]).column("text").to_pylist()
                lines += found[max(0, begin - first) : end - first]
        return lines

    def _columns(self, group: int, names: list[str]) -> Any:  # noqa: ANN401 - pyarrow has no types
        present = [name for name in names if name in self._file.schema_arrow.names]
        return self._file.read_row_group(group, columns=present, use_threads=False)
