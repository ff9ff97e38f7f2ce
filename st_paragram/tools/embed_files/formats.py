"""Formats of embeddings: a matrix, a Parquet table, and JSON lines.

`Matrix` and `ParquetTable` write blocks of rows to a file, and read the blocks of a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.tools.embed_files.rows import Batch, RowEncoder

_ROWS = 1 << 14  # rows of a matrix read at a time
_DIGITS = {"float32": "%.9g", "float16": "%.5g"}  # enough to distinguish all numbers of a type


class Matrix:
    """A matrix (N, D) as a `.npy` file, written block by block."""

    suffix = ".npy"

    def __init__(self, encoder: RowEncoder) -> None:
        """Use the number type and the dimension of an encoder."""
        self._dtype = np.dtype(encoder.settings.dtype)
        self._dimension = encoder.dimension

    def blocks(self, batches: Iterable[Batch]) -> Iterator[NDArray[np.floating]]:
        """Yield the rows of batches of lines."""
        for _, rows in batches:
            yield rows

    def write(self, file: IO[bytes], blocks: Iterable[NDArray[np.floating]]) -> None:
        """Write a matrix; the number of its rows is written last."""
        count = 0
        self._write_header(file, count)
        for rows in blocks:
            file.write(rows.data)
            count += len(rows)
        file.seek(0)
        self._write_header(file, count)

    def read(self, path: Path) -> Iterator[NDArray[np.floating]]:
        """Yield copies of the rows, so that the file can be removed."""
        rows = np.load(path, mmap_mode="r")
        for begin in range(0, len(rows), _ROWS):
            yield np.array(rows[begin : begin + _ROWS])

    def _write_header(self, file: IO[bytes], count: int) -> None:
        shape = (count, self._dimension)
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(file, header)  # leaves space for the digits of larger numbers


class ParquetTable:
    """A Parquet table with columns of texts and the column `embedding`, lists of D numbers."""

    suffix = ".parquet"

    def __init__(self, encoder: RowEncoder, columns: Sequence[str] = ("text",)) -> None:
        """Use the number type and the dimension of an encoder, and names for text columns."""
        arrow = require("pyarrow", "parquet", "a Parquet table")
        self._arrow = arrow
        self._parquet = require("pyarrow.parquet", "parquet", "a Parquet table")
        number_type = arrow.from_numpy_dtype(encoder.settings.dtype)
        number = arrow.field("element", number_type, nullable=False)
        self._vector_type = arrow.list_(number, encoder.dimension)
        fields = [arrow.field(name, arrow.string(), nullable=False) for name in columns]
        fields.append(arrow.field("embedding", self._vector_type, nullable=False))
        self._schema = arrow.schema(fields)

    def blocks(self, batches: Iterable[Batch]) -> Iterator[Any]:
        """Yield record batches of lines with their rows."""
        for lines, rows in batches:
            yield self.record_batch(rows, lines)

    def record_batch(self, rows: NDArray[np.floating], *columns: list[str]) -> Any:
        """Make a record batch of n rows, (n, D), and the n texts of each text column."""
        vectors = self._arrow.FixedSizeListArray.from_arrays(
            rows.reshape(-1), type=self._vector_type
        )
        return self._arrow.record_batch([*columns, vectors], schema=self._schema)

    def writer(self, file: IO[bytes]) -> Any:
        """Open a writer; compression and statistics of embeddings would have little effect."""
        return self._parquet.ParquetWriter(
            file,
            self._schema,
            use_dictionary=False,
            compression={"text": "zstd"},
            write_statistics=False,
        )

    def write(self, file: IO[bytes], blocks: Iterable[Any]) -> None:
        """Write a table."""
        with self.writer(file) as writer:
            for block in blocks:
                writer.write(block)

    def read(self, path: Path) -> Iterator[Any]:
        """Yield the blocks of a table."""
        with self._parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)

    def is_same_kind(self, file: IO[bytes]) -> bool:
        """Whether a file is a Parquet table with the same columns."""
        try:
            names: list[str] = self._parquet.read_schema(file).names
        except ValueError:  # not Parquet
            return False
        return names == self._schema.names


def write_json_lines(file: IO[bytes], encoder: RowEncoder, batches: Iterable[Batch]) -> None:
    """Write an object with `line`, `text` and `embedding` for each line."""
    numbers = ", ".join([_DIGITS[encoder.settings.dtype]] * encoder.dimension)
    line = 0
    for texts, rows in batches:
        for text, row in zip(texts, rows.tolist(), strict=True):
            line += 1
            shown = json.dumps(text, ensure_ascii=False)
            embedding = numbers % tuple(row)
            record = f'{{"line": {line}, "text": {shown}, "embedding": [{embedding}]}}\n'
            file.write(record.encode())
