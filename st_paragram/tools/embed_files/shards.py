"""Shards of vectors, as NumPy matrices that any program can map, or as Parquet tables; and rows across shards.

Columns of a table: `text` (string) if it is asked for, `embedding` (a list of D numbers), and for int8 `scale`
(float32). Tables need pyarrow (extra `parquet`). A matrix of int8 has its scales in a second file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import NumberType, Packed, Vectors
from st_paragram.core.extras import require
from st_paragram.core.files import atomic

#: Writes the next vectors of a shard, with the lines that they are of.
Write = Callable[[Packed, Sequence[str]], None]


@dataclass(frozen=True)
class ShardShape:
    """What a shard holds: n vectors of D components, and perhaps their lines."""

    rows: int
    dimension: int
    dtype: NumberType
    with_text: bool = False


def shard_files(path: Path, dtype: NumberType) -> list[Path]:
    """All files of a shard: itself, and for a matrix of int8 that of its scales."""
    scales = path.with_name(f"{path.stem}.scales.npy")
    return [path, scales] if (path.suffix, dtype) == (".npy", NumberType.INT8) else [path]


def write_header(file: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    """Write the header of a `.npy` file; numpy pads it so that it keeps its size while the number of rows grows."""
    npy.write_array_header_1_0(file, {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape})


@contextmanager
def write_array(path: Path, dtype: str, shape: tuple[int, ...]) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Open a `.npy` file to be written part by part; it takes its name when the block ends without an error."""
    with atomic(path) as file:
        write_header(file, dtype, shape)

        def write(numbers: NDArray[Any]) -> None:
            file.write(np.ascontiguousarray(numbers).data)

        yield write


def map_array(path: Path, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a `.npy` file of one type and shape; OSError or ValueError where it is another, or none."""
    found = npy.open_memmap(path, mode="r")
    if (found.dtype, found.shape) != (np.dtype(dtype), shape):
        raise ValueError(f"{found.dtype} of shape {found.shape} where {dtype} of shape {shape} is expected")
    return found


@contextmanager
def shard_writer(path: Path, shape: ShardShape) -> Iterator[Write]:
    """Open a shard, `.npy` or `.parquet`, for writing; it takes its name when the block ends without an error."""
    with ExitStack() as stack:
        if path.suffix == ".parquet":
            yield stack.enter_context(_write_parquet(path, shape))
            return
        shapes = (shape.dtype.value, (shape.rows, shape.dimension)), ("float32", (shape.rows,))
        files = zip(shard_files(path, shape.dtype), shapes, strict=False)
        writers = [stack.enter_context(write_array(file, *each)) for file, each in files]

        def write(packed: Packed, _: Sequence[str]) -> None:
            writers[0](packed.numbers)
            if packed.scales is not None:
                writers[1](packed.scales)

        yield write


@contextmanager
def _write_parquet(path: Path, shape: ShardShape) -> Iterator[Write]:
    """Open a Parquet table; each batch that is written becomes a row group."""
    pa, schema = _arrow(), _schema(shape)
    options = {
        # Parquet stores 8-bit integers in 32 bits, except through a dictionary, which then has at most 255 entries.
        "use_dictionary": shape.dtype is NumberType.INT8,
        "compression": {"text": "zstd"} if shape.with_text else "none",
        "write_statistics": False,
    }
    with atomic(path) as file, _arrow("parquet").ParquetWriter(file, schema, **options) as writer:

        def write(packed: Packed, texts: Sequence[str]) -> None:
            rows = pa.FixedSizeListArray.from_arrays(packed.numbers.reshape(-1), type=schema.field("embedding").type)
            columns = {"text": texts, "embedding": rows, "scale": packed.scales}
            writer.write_table(pa.table([columns[name] for name in schema.names], schema=schema))

        yield write


def _arrow(module: str = "") -> Any:  # noqa: ANN401 - pyarrow has no types
    return require(f"pyarrow.{module}" if module else "pyarrow", "parquet", "a Parquet table")


def _schema(shape: ShardShape) -> Any:  # noqa: ANN401 - pyarrow has no types
    pa = _arrow()
    number = pa.field("element", pa.from_numpy_dtype(shape.dtype.value), nullable=False)
    text, scale = pa.field("text", pa.string(), False), pa.field("scale", pa.float32(), False)
    fields = [text] * shape.with_text + [pa.field("embedding", pa.list_(number, shape.dimension), False)]
    return pa.schema(fields + [scale] * (shape.dtype is NumberType.INT8))


def shard_reader(path: Path, shape: ShardShape) -> Packed | ParquetShard:
    """Open a shard to take rows by `[...]`; OSError or ValueError where it holds something else."""
    if path.suffix == ".parquet":
        return ParquetShard(path, shape)
    first, *second = shard_files(path, shape.dtype)
    numbers = map_array(first, shape.dtype.value, (shape.rows, shape.dimension))
    return Packed(numbers, map_array(second[0], "float32", (shape.rows,)) if second else None)


class ParquetShard:
    """A Parquet table; only the row groups that are asked for are read."""

    def __init__(self, path: Path, shape: ShardShape) -> None:
        """Open it."""
        self._file, self._shape = _arrow("parquet").ParquetFile(path, memory_map=True), shape
        found, metadata = self._file.schema_arrow, self._file.metadata
        if (found, metadata.num_rows) != (_schema(shape), shape.rows):
            columns = ", ".join(f"{field.name}: {field.type}" for field in found)
            raise ValueError(f"{metadata.num_rows} rows of columns ({columns}) where {shape} is expected")
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])

    def __getitem__(self, rows: slice | NDArray[Any]) -> Packed:
        """Embeddings of neighboring rows, or of rows by their numbers."""
        wanted, scaled = np.arange(self._shape.rows)[rows], self._shape.dtype is NumberType.INT8
        numbers = np.empty((len(wanted), self._shape.dimension), self._shape.dtype.value)
        scales = np.empty(len(wanted), np.float32) if scaled else None
        for places, part in self._parts(wanted, ["embedding", "scale"] if scaled else ["embedding"]):
            numbers[places] = part["embedding"].combine_chunks().flatten().to_numpy().reshape(len(places), -1)
            if scales is not None:
                scales[places] = part["scale"].to_numpy()
        return Packed(numbers, scales)

    def texts(self, rows: slice) -> list[str]:
        """The lines of neighboring rows."""
        return [
            line
            for _, part in self._parts(np.arange(self._shape.rows)[rows], ["text"])
            for line in part["text"].to_pylist()
        ]

    def _parts(self, wanted: NDArray[np.int64], columns: list[str]) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Wanted rows of each row group that has some: where they are in `wanted`, and their columns."""
        groups = np.searchsorted(self._starts, wanted, side="right") - 1
        for group in np.unique(groups):
            places = np.flatnonzero(groups == group)
            table = self._file.read_row_group(int(group), columns=columns, use_threads=False)
            yield places, table.take(wanted[places] - self._starts[group])


class ShardedRows(ABC):
    """The rows of shards that follow one another."""

    @property
    @abstractmethod
    def starts(self) -> NDArray[np.int64]:
        """Row at which each shard begins, and the number of rows: int64 (shards + 1,)."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Components of a row, D."""

    @abstractmethod
    def fill(self, out: Vectors, shard: int, rows: slice | NDArray[np.int64]) -> None:
        """Put rows of a shard, counted from its first one, into an array float32 (rows, D)."""

    def __len__(self) -> int:
        """Number of rows, n."""
        return int(self.starts[-1])

    def rows(self, begin: int, end: int) -> Vectors:
        """The rows `begin` to `end`, which is at most n: float32 (end - begin, D)."""
        result = np.empty((max(0, end - begin), self.dim), np.float32)
        for shard, rows in self.overlaps(begin, end):
            first = int(self.starts[shard]) - begin
            self.fill(result[first + rows.start : first + rows.stop], shard, rows)
        return result

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Rows by their numbers from 0 to n - 1, in any order: float32 (len(rows), D)."""
        result = np.empty((len(rows), self.dim), np.float32)
        shards = np.searchsorted(self.starts, rows, side="right") - 1
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            part = np.empty((len(places), self.dim), np.float32)
            self.fill(part, int(shard), rows[places] - self.starts[shard])
            result[places] = part
        return result

    def overlaps(self, begin: int, end: int) -> Iterator[tuple[int, slice]]:
        """The numbers of the shards that have some of the rows `begin` to `end`, and the rows within each."""
        for shard, (start, stop) in enumerate(pairwise(self.starts.tolist())):
            if max(begin, start) < min(end, stop):
                yield shard, slice(max(begin, start) - start, min(end, stop) - start)
