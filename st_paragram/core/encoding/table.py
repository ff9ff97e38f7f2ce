"""An embedding table in NumPy arrays, and means of its rows: what a sentence embedding is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError

_ROWS = 4096  # rows converted at a time, so that no second table of float32 is in memory
_LARGEST = 127  # of the int8 numbers in use; -128 has no counterpart
_BLOCK_BYTES = 16 << 20  # of gathered rows, without compiled kernels
_SHORTEST = 1e-12  # vectors are divided by at least this length

Ids = NDArray[np.integer[Any]]
Vectors = NDArray[np.float32]


class TableType(str, Enum):
    """How the numbers of an embedding table are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"

    @classmethod
    def of(cls, name: TableType | str) -> TableType:
        """The type called `name`.

        Raises:
            SettingsError: there is no such type.
        """
        try:
            return cls(name)
        except ValueError:
            raise SettingsError(f"no table type {name!r}; choose {', '.join(kind.value for kind in cls)}") from None


@dataclass(frozen=True, eq=False)
class Table:
    """A table of V rows to look up.

    Attributes:
        weight: float32, float16 or int8 (V, D), C-contiguous.
        scale: float32 (V,), what each row of an int8 table is multiplied by; None for floats.
    """

    weight: NDArray[Any]
    scale: NDArray[np.float32] | None = None

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.weight.shape[1])

    @property
    def kind(self) -> TableType:
        """How the numbers are stored."""
        return TableType(self.weight.dtype.name)

    def __len__(self) -> int:
        """V."""
        return len(self.weight)

    def __deepcopy__(self, memo: object) -> Table:
        """The table itself: nothing writes to it."""
        return self

    def rows(self, ids: Any) -> Vectors:  # noqa: ANN401 - whatever indexes an array
        """Rows as float32, for ids of any shape (...): (..., D)."""
        rows = self.weight[ids].astype(np.float32)
        return rows if self.scale is None else np.multiply(rows, np.asarray(self.scale[ids])[..., None])

    def truncated(self, dimension: int | None) -> Table:
        """The first components of all rows, copied; the table itself for None or its own dimension."""
        if dimension is None or dimension >= self.dimension:
            return self
        return Table(np.ascontiguousarray(self.weight[:, :dimension]), self.scale)

    def converted(self, kind: TableType) -> Table:
        """The table stored in another type; the table itself for its own.

        int8 is symmetric: the largest component of a row, in absolute value, becomes 127.

        Raises:
            SettingsError: a component is too large for float16.
        """
        if kind is self.kind:
            return self
        if kind is TableType.INT8:
            return self._rounded()
        weight = np.empty(self.weight.shape, dtype=kind.value)
        with np.errstate(over="ignore"):
            for block in self._blocks():
                weight[block] = self.rows(block)
        if kind is TableType.FLOAT16 and not is_finite(weight):
            raise SettingsError("components above 65,504 do not fit float16; choose int8 or float32")
        return Table(weight)

    def _rounded(self) -> Table:
        weight, scale = np.empty(self.weight.shape, np.int8), np.empty(len(self), np.float32)
        for block in self._blocks():
            rows = self.rows(block)
            largest = np.abs(rows).max(axis=1, initial=0)
            scale[block] = largest / np.float32(_LARGEST)
            # A row of zeros, or of numbers so small that their scale is zero, stays zero.
            divisor = np.where(scale[block] > 0, scale[block], np.float32(1))
            weight[block] = np.clip(np.rint(rows / divisor[:, None]), -_LARGEST, _LARGEST)
        return Table(weight, scale)

    def _blocks(self) -> list[slice]:
        return [slice(first, first + _ROWS) for first in range(0, len(self), _ROWS)]

    def means(
        self,
        ids: Ids,
        offsets: NDArray[np.int64],
        out: Vectors | None = None,
        normalized: bool = False,
        threads: int = 1,
    ) -> Vectors:
        """Mean of the rows of each text, by the compiled kernel where there is one.

        Args:
            ids: integers (total,).
            offsets: int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]]; without an id its mean is zero.
            out: float32 (N, D), C-contiguous, for the result.
            normalized: scale each mean to length 1.
            threads: of the kernel.

        Returns:
            float32 (N, D); `out` if given.

        Raises:
            ValueError: an id outside the table, or offsets that do not fit the ids.
        """
        if out is None:
            out = np.empty((len(offsets) - 1, self.dimension), dtype=np.float32)
        native = kernels()
        if native is None or not (self.weight.flags.c_contiguous and self.weight.flags.aligned):
            self._means_in_numpy(ids, offsets, out)
            return normalize(out) if normalized else out
        arguments = (_narrow(ids), offsets, out, normalized, threads)
        if self.scale is not None:
            native.mean_rows_i8(self.weight, self.scale, *arguments)
        elif self.weight.dtype == np.float16:
            native.mean_rows_f16(self.weight.view(np.uint16), *arguments)
        else:
            native.mean_rows(self.weight, *arguments)
        return out

    def _means_in_numpy(self, ids: Ids, offsets: NDArray[np.int64], out: Vectors) -> None:
        counts = np.diff(offsets)
        if len(counts) and (offsets[0] != 0 or offsets[-1] != len(ids) or counts.min() < 0):
            raise ValueError("offsets do not grow from 0 to the number of ids")
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(self):
            raise ValueError(f"ids from {ids.min()} to {ids.max()}, and a table of {len(self)} rows")
        step = max(1, _BLOCK_BYTES // (4 * self.dimension))  # ids
        first = 0
        while first < len(counts):
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + step, side="right")) - 1)
            begin, end = offsets[first], offsets[last]
            rows, kept = self.rows(ids[begin:end]), counts[first:last] > 0
            out[first:last] = 0
            if len(rows):
                starts = (offsets[first:last] - begin)[kept]
                out[first:last][kept] = (
                    np.add.reduceat(rows, starts, axis=0, dtype=np.float64) / counts[first:last, None][kept]
                )
            first = last


def normalize(vectors: Vectors, out: Vectors | None = None) -> Vectors:
    """Scale rows to length 1, in place unless `out` is given; rows of zeros stay zero."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    return np.divide(
        vectors, np.maximum(lengths, _SHORTEST).astype(np.float32)[:, None], out=vectors if out is None else out
    )


def is_finite(array: NDArray[Any]) -> bool:
    """Whether no number is infinite or NaN; a finite sum shows it without a second array."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum(dtype=np.float32)) or np.isfinite(array).all())


def _narrow(ids: Ids) -> NDArray[np.int32]:
    """Ids as the kernels take them; an id that does not fit would become another, and is refused."""
    narrow = ids.astype(np.int32, copy=False)
    if narrow is not ids and ids.dtype != np.uint16 and not np.array_equal(narrow, ids):
        raise ValueError(f"ids from {ids.min()} to {ids.max()}; no table has so many rows")
    return np.ascontiguousarray(narrow)
