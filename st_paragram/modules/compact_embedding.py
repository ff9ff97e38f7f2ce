"""Embedding tables of fewer bytes, for encoding alone: float16, or int8 with one scale a row."""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.native import huge_pages

_ROWS = 4096  # rows converted at a time, so that no second table of float32 stands in memory
_LARGEST = 127  # of the integers in use; -128 has no counterpart


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


class CompactEmbedding(nn.Module):
    """A table to look up and not to train: `weight`, float16 or int8 (V, D), and for int8 `scale`, float32 (V,).

    Row i stands for `weight[i]` or `weight[i] * scale[i]`. Every result is float32.
    """

    weight: Tensor
    scale: Tensor | None

    def __init__(self, weight: Tensor, scale: Tensor | None = None) -> None:
        """Take a table.

        Raises:
            SettingsError: not float16 without scales or int8 with one scale a row.
        """
        super().__init__()
        expected = (torch.float16, None) if scale is None else (torch.int8, weight.shape[:1])
        if weight.ndim != 2 or (weight.dtype, scale if scale is None else scale.shape) != expected:
            raise SettingsError(
                f"a table of {weight.dtype}, shape {tuple(weight.shape)}, with "
                f"{'no scales' if scale is None else f'scales of shape {tuple(scale.shape)}'}; "
                "give float16 without scales, or int8 with one scale a row"
            )
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)

    @classmethod
    def from_rows(cls, table: Tensor, kind: TableType) -> CompactEmbedding:
        """Round a table.

        int8 is symmetric: the largest component of a row, in absolute value, becomes 127. float16 holds up to 65,504.

        Args:
            table: float32 (V, D) on the CPU.
            kind: float16 or int8.

        Raises:
            SettingsError: another kind, or a component too large for float16.
        """
        if kind is TableType.FLOAT32:
            raise SettingsError("float32 is no compact type; keep the table as it is")
        if kind is TableType.FLOAT16:
            weight = huge_pages.empty(tuple(table.shape), torch.float16).copy_(table)
            if not is_finite(weight):
                raise SettingsError("components above 65,504 do not fit float16; choose int8 or float32")
            return cls(weight)
        weight = huge_pages.empty(tuple(table.shape), torch.int8)
        scale = torch.empty(len(table))
        for first in range(0, len(table), _ROWS):
            block = slice(first, first + _ROWS)
            rows = table[block]
            largest = rows.abs().amax(dim=1) if rows.shape[1] else rows.new_zeros(len(rows))
            scale[block] = largest / _LARGEST
            # A row of zeros, or of numbers so small that their scale is none, stays zero.
            divisor = torch.where(scale[block] > 0, scale[block], 1.0)
            weight[block] = (rows / divisor[:, None]).round_().clamp_(-_LARGEST, _LARGEST)
        return cls(weight, scale)

    @property
    def num_embeddings(self) -> int:
        """V."""
        return self.weight.shape[0]

    @property
    def embedding_dim(self) -> int:
        """D."""
        return self.weight.shape[1]

    @property
    def kind(self) -> TableType:
        """How the numbers are stored."""
        return TableType.FLOAT16 if self.scale is None else TableType.INT8

    def forward(self, ids: Tensor) -> Tensor:
        """Rows as float32: ids, int64 of any shape (...), to (..., D)."""
        rows = self.weight[ids].float()
        return rows if self.scale is None else rows * self.scale[ids][..., None].float()

    def to_float32(self) -> Tensor:
        """The whole table, float32 (V, D)."""
        table = huge_pages.empty((self.num_embeddings, self.embedding_dim))
        table.copy_(self.weight)
        return table if self.scale is None else table.mul_(self.scale[:, None].to(table.device))

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.num_embeddings}, {self.embedding_dim}, {self.kind.value}"


def is_finite(table: Tensor) -> bool:
    """Whether no component is infinite or NaN: their sum shows it, without a second table and 20 times as fast."""
    return bool(torch.isfinite(table.sum(dtype=torch.float32)) or torch.isfinite(table).all())
