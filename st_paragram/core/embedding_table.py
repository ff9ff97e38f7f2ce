"""An embedding matrix in NumPy arrays, and means of its rows, which are sentence embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core import quantization
from st_paragram.core.arrays import Integers, Vectors
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError

_BLOCK = 1 << 10  # rows converted at a time, so that they fit into the cache
_SHORTEST = 1e-12  # vectors are divided by at least this length

Ids = NDArray[np.integer[Any]]
Offsets = Integers


class TableType(str, Enum):
    """How the numbers of an embedding table are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    INT4 = "int4"

    @classmethod
    def of(cls, name: str) -> TableType:
        """Return the type of this name; refuse an unknown name."""
        names = [kind.value for kind in cls]
        if name not in names:
            raise SettingsError(f"unknown number type {name!r}; choose {', '.join(names)}")
        return cls(name)


# Names of dtypes take NumPy 4 us, so types are looked up by dtype.
_TYPES = {
    np.dtype(np.float32): TableType.FLOAT32,
    np.dtype(np.float16): TableType.FLOAT16,
    np.dtype(np.int8): TableType.INT8,
    np.dtype(np.uint8): TableType.INT4,
}
_KERNELS = {
    TableType.FLOAT32: "mean_rows",
    TableType.FLOAT16: "mean_rows_f16",
    TableType.INT8: "mean_rows_i8",
    TableType.INT4: "mean_rows_i4",
}


def for_any_reader(kind: TableType) -> TableType:
    """Return the type with equal numbers that plain sentence-transformers can read."""
    return TableType.INT8 if kind is TableType.INT4 else kind


@dataclass(frozen=True, eq=False)
class Table:
    """A lookup table of V rows."""

    weight: NDArray[Any]  # float32, float16 or int8 (V, D), or for int4 uint8 (V, D / 2)
    # (V,), a factor for each row of integers; None for floats
    scale: Vectors | None = None

    @property
    def kind(self) -> TableType:
        """The number type of the table."""
        return _TYPES[self.weight.dtype]

    @property
    def dimension(self) -> int:
        """Dimension D of the embeddings."""
        columns = int(self.weight.shape[1])
        return 2 * columns if self.kind is TableType.INT4 else columns

    def __len__(self) -> int:
        """Number of rows, V."""
        return len(self.weight)

    def __deepcopy__(self, memo: object) -> Table:
        """Return the table itself, since it is never changed."""
        return self

    def rows(self, ids: Any) -> Vectors:
        """Look up rows, float32 (..., D), for ids of any shape (...)."""
        numbers = self.weight[ids]
        if self.kind is TableType.INT4:
            numbers = quantization.from_int4(numbers)
        rows: Vectors = numbers.astype(np.float32)
        if self.scale is not None:
            rows *= np.asarray(self.scale[ids])[..., None]
        return rows

    def is_finite(self) -> bool:
        """Whether no component is infinite or NaN."""
        numbers = self.weight if self.scale is None else self.scale
        return bool(np.isfinite(numbers).all())

    def truncated(self, dimension: int | None) -> Table:
        """Copy the first dimensions of all rows.

        An odd number of int4 dimensions becomes int8, with equal numbers.
        """
        if dimension is None or dimension >= self.dimension:
            return self
        if self.kind is TableType.INT4:
            if dimension % 2:
                return self.converted(TableType.INT8).truncated(dimension)
            dimension //= 2
        return Table(np.ascontiguousarray(self.weight[:, :dimension]), self.scale)

    def converted(self, kind: TableType) -> Table:
        """Convert to another number type.

        int4 becomes int8 without rounding, with the same integers and scales.
        """
        if kind is self.kind:
            return self
        if self.kind is TableType.INT4:
            return Table(quantization.from_int4(self.weight), self.scale).converted(kind)
        if kind is TableType.INT4:
            quantization.check_even(self.dimension)
        weights = []
        scales = []
        for begin in range(0, len(self), _BLOCK):
            weight, scale = _stored(self.rows(slice(begin, begin + _BLOCK)), kind)
            weights.append(weight)
            if scale is not None:
                scales.append(scale)
        table = Table(np.concatenate(weights), np.concatenate(scales) if scales else None)
        if kind is TableType.FLOAT16 and not table.is_finite():
            raise SettingsError("values above 65,504 do not fit in float16; choose int8 or float32")
        return table

    def means(
        self, ids: Ids, offsets: Offsets, normalized: bool = False, threads: int = 1
    ) -> Vectors:
        """Average the rows of each text, float32 (N, D), see `fill_means`."""
        out = np.empty((len(offsets) - 1, self.dimension), dtype=np.float32)
        self.fill_means(ids, offsets, out, normalized, threads)
        return out

    def fill_means(
        self, ids: Ids, offsets: Offsets, out: Vectors, normalized: bool, threads: int
    ) -> bool:
        """Write the mean of each text's rows into `out`; return whether all are finite.

        `out` is C-contiguous. Text i is ids[offsets[i]:offsets[i + 1]]; its mean is zero if it has
        no ids. `normalized` means have length 1.
        """
        native = kernels()
        if native is None or not (self.weight.flags.c_contiguous and self.weight.flags.aligned):
            self._means_in_numpy(ids, offsets, out)
            if normalized:
                normalize(out)
            return bool(np.isfinite(out).all())
        mean_rows = getattr(native, _KERNELS[self.kind])
        weight = self.weight.view(np.uint16) if self.kind is TableType.FLOAT16 else self.weight
        ids = _narrow(ids)
        if self.scale is None:
            return bool(mean_rows(weight, ids, offsets, out, normalized, threads))
        return bool(mean_rows(weight, self.scale, ids, offsets, out, normalized, threads))

    def _means_in_numpy(self, ids: Ids, offsets: Offsets, out: Vectors) -> None:
        """Convert each distinct row once, and average texts of the same length together."""
        distinct, places = np.unique(ids, return_inverse=True)
        if len(ids) and not 0 <= distinct[0] <= distinct[-1] < len(self):
            raise ValueError(
                f"ids from {distinct[0]} to {distinct[-1]}, but a table of {len(self)} rows"
            )
        rows = self.rows(distinct)
        counts = np.diff(offsets)
        out[counts == 0] = 0
        for count in np.unique(counts[counts > 0]):
            texts = np.flatnonzero(counts == count)
            out[texts] = rows[places[offsets[texts, None] + np.arange(count)]].mean(axis=1)


def _stored(rows: Vectors, kind: TableType) -> tuple[NDArray[Any], Vectors | None]:
    """Convert rows to stored numbers, with scales for integers."""
    if kind is TableType.INT4:
        return quantization.to_int4(rows)
    if kind is TableType.INT8:
        scales = quantization.int8_scales(rows)
        return quantization.to_int8(rows, scales), scales
    with np.errstate(over="ignore"):
        return rows.astype(kind.value), None


def normalize(vectors: Vectors) -> Vectors:
    """Scale rows to length 1, in place; rows of zeros stay zero."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    vectors /= np.maximum(lengths, _SHORTEST).astype(np.float32)[:, None]
    return vectors


def _narrow(ids: Ids) -> NDArray[np.int32]:
    """Convert ids to the kernels' type; refuse ids that do not fit."""
    narrow = ids.astype(np.int32, copy=False)
    if narrow is not ids and ids.dtype != np.uint16 and not np.array_equal(narrow, ids):
        raise ValueError(f"ids from {ids.min()} to {ids.max()}; no table has so many rows")
    return np.ascontiguousarray(narrow)
