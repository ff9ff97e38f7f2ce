"""An embedding table in NumPy arrays, and means of its rows: what a sentence embedding is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding import nibbles
from st_paragram.core.encoding.packing import BLOCK, NumberType, Packed, Vectors, pack, unpack
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError

_BLOCK_NUMBERS = 1 << 18  # gathered at a time without compiled kernels: they stay in the cache
_SHORTEST = 1e-12  # vectors are divided by at least this length

Ids = NDArray[np.integer[Any]]


class TableType(str, Enum):
    """How the numbers of an embedding table are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    INT4 = "int4"

    @classmethod
    def of(cls, name: str) -> TableType:
        """The type called `name`; refuses another."""
        if name not in list(cls):
            raise SettingsError(f"unknown number type {name!r}; choose {', '.join(kind.value for kind in cls)}")
        return cls(name)


_KERNELS = dict(zip(TableType, ("mean_rows", "mean_rows_f16", "mean_rows_i8", "mean_rows_i4"), strict=True))


def for_any_reader(kind: TableType) -> TableType:
    """The type in which sentence-transformers alone reads a table: int8 for int4, with the same numbers."""
    return TableType.INT8 if kind is TableType.INT4 else kind


@dataclass(frozen=True, eq=False)
class Table:
    """A table of V rows to look up."""

    weight: NDArray[Any]  # float32, float16 or int8 (V, D), or for int4 uint8 (V, D / 2), see `nibbles`; C-contiguous
    scale: NDArray[np.float32] | None = None  # (V,), what each row of integers is multiplied by; None for floats

    @cached_property
    def kind(self) -> TableType:
        """How the numbers are stored."""
        return TableType.INT4 if self.weight.dtype == np.uint8 else TableType(self.weight.dtype.name)

    @cached_property
    def dimension(self) -> int:
        """D."""
        return int(self.weight.shape[1]) * (2 if self.kind is TableType.INT4 else 1)

    def __len__(self) -> int:
        """V."""
        return len(self.weight)

    def __deepcopy__(self, memo: object) -> Table:
        """The table itself: nothing writes to it."""
        return self

    def rows(self, ids: Any) -> Vectors:  # noqa: ANN401 - whatever indexes an array
        """Rows as float32, for ids of any shape (...): (..., D)."""
        rows = Packed(self.weight, self.scale)[ids]
        return unpack(Packed(nibbles.unpack(rows.numbers), rows.scales) if self.kind is TableType.INT4 else rows)

    def is_finite(self) -> bool:
        """Whether no component is infinite or NaN; a finite sum shows it without a second array."""
        numbers = self.weight if self.scale is None else self.scale
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(numbers.sum(dtype=np.float32)) or np.isfinite(numbers).all())

    def truncated(self, dimension: int | None) -> Table:
        """The first components of all rows, copied; the table itself for None or its own dimension.

        An odd number of components of an int4 table becomes int8, with the same numbers.
        """
        if dimension is None or dimension >= self.dimension:
            return self
        if self.kind is TableType.INT4:
            if dimension % 2:
                return self.converted(TableType.INT8).truncated(dimension)
            dimension //= 2
        return Table(np.ascontiguousarray(self.weight[:, :dimension]), self.scale)

    def converted(self, kind: TableType) -> Table:
        """The table stored in another type, see `packing.pack` and `nibbles`; the table itself for its own.

        int4 becomes int8 without rounding: the integers and scales are the same.
        """
        if kind is self.kind:
            return self
        if self.kind is TableType.INT4:
            return Table(nibbles.unpack(self.weight), self.scale).converted(kind)
        if kind is TableType.INT4:
            nibbles.check_even(self.dimension)
            parts = [nibbles.pack(self.rows(slice(at, at + BLOCK))) for at in range(0, len(self), BLOCK)]
            return Table(*map(np.concatenate, zip(*parts, strict=True)))
        packed = pack(Packed(self.weight, self.scale), NumberType(kind.value))
        table = Table(packed.numbers, packed.scales)
        if kind is TableType.FLOAT16 and not table.is_finite():
            raise SettingsError("components above 65,504 do not fit in float16; choose int8 or float32")
        return table

    def means(
        self,
        ids: Ids,
        offsets: NDArray[np.int64],
        out: Vectors | None = None,
        normalized: bool = False,
        threads: int = 1,
    ) -> Vectors:
        """Mean of the rows of each text, float32 (N, D), by the compiled kernel where there is one.

        Args:
            ids: integers (total,).
            offsets: int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]]; without an id its mean is zero.
            out: C-contiguous, for the result.
            normalized: scale each mean to length 1.
            threads: of the kernel.
        """
        if out is None:
            out = np.empty((len(offsets) - 1, self.dimension), dtype=np.float32)
        native = kernels()
        if native is None or not (self.weight.flags.c_contiguous and self.weight.flags.aligned):
            self._means_in_numpy(ids, offsets, out)
            return normalize(out) if normalized else out
        mean_rows = getattr(native, _KERNELS[self.kind])
        weight = self.weight.view(np.uint16) if self.kind is TableType.FLOAT16 else self.weight
        scales = () if self.scale is None else (self.scale,)
        mean_rows(weight, *scales, _narrow(ids), offsets, out, normalized, threads)
        return out

    def _means_in_numpy(self, ids: Ids, offsets: NDArray[np.int64], out: Vectors) -> None:
        """Each row that occurs is unpacked once, and texts of one length are averaged together."""
        counts = np.diff(offsets)
        if len(counts) and (offsets[0] != 0 or offsets[-1] != len(ids) or counts.min() < 0):
            raise ValueError("offsets do not increase from 0 to the number of ids")
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(self):
            raise ValueError(f"ids from {ids.min()} to {ids.max()}, and a table of {len(self)} rows")
        occurs = np.zeros(len(self), bool)
        occurs[ids] = True
        distinct = np.flatnonzero(occurs)
        rows, places = self.rows(distinct), np.empty(len(self), np.int64)
        places[distinct] = np.arange(len(distinct))
        places = places[ids]
        out[counts == 0] = 0
        for count in np.unique(counts[counts > 0]):
            texts = np.flatnonzero(counts == count)
            step = max(1, _BLOCK_NUMBERS // (count * self.dimension))
            for first in range(0, len(texts), step):
                some = texts[first : first + step]
                out[some] = rows[places[offsets[some, None] + np.arange(count)]].mean(axis=1)


def normalize(vectors: Vectors) -> Vectors:
    """Scale rows to length 1, in place; rows of zeros stay zero."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    vectors /= np.maximum(lengths, _SHORTEST).astype(np.float32)[:, None]
    return vectors


def _narrow(ids: Ids) -> NDArray[np.int32]:
    """Ids as the kernels take them; an id that does not fit would become another, and is refused."""
    narrow = ids.astype(np.int32, copy=False)
    if narrow is not ids and ids.dtype != np.uint16 and not np.array_equal(narrow, ids):
        raise ValueError(f"ids from {ids.min()} to {ids.max()}; no table has so many rows")
    return np.ascontiguousarray(narrow)
