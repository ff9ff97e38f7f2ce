"""Embedding tables of fewer bytes, for encoding alone: float16, or int8 or int4 with one scale per row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from st_paragram.core.encoding.table import Table, TableType
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError
from st_paragram.learning.modules import huge_pages

#: Types of the weights of tables with scales; uint8 holds two components per byte.
INTEGERS = {torch.int8, torch.uint8}
_BLOCK = 1 << 12  # rows at a time, so that no second table is in memory


class CompactEmbedding(nn.Module):
    """A table to look up and not to train: `weight`, float16 or int8 (V, D), and for int8 `scale`, float32 (V,).

    Row i stands for `weight[i]` or `weight[i] * scale[i]`. Every result is float32. A table of int4 is `weight`, uint8
    (V, D / 2): the lower four bits of byte j are component 2j, the upper four 2j + 1, both from -8 to 7.
    """

    weight: Tensor
    scale: Tensor | None

    def __init__(self, weight: Tensor, scale: Tensor | None = None) -> None:
        """Take a table.

        Raises:
            SettingsError: not float16 without scales, or int8 or int4 with one scale per row.
        """
        super().__init__()
        types = {torch.float16} if scale is None else INTEGERS
        if weight.ndim != 2 or weight.dtype not in types or (scale is not None and scale.shape != weight.shape[:1]):
            raise SettingsError(
                f"a table of {weight.dtype}, shape {tuple(weight.shape)}, with "
                f"{'no scales' if scale is None else f'scales of shape {tuple(scale.shape)}'}; give float16 "
                "without scales, or int8 or int4 (as uint8) with one scale per row"
            )
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)

    @property
    def num_embeddings(self) -> int:
        """V."""
        return self.weight.shape[0]

    @property
    def embedding_dim(self) -> int:
        """D."""
        return self.weight.shape[1] * (2 if self.kind is TableType.INT4 else 1)

    @property
    def kind(self) -> TableType:
        """How the numbers are stored."""
        if self.scale is None:
            return TableType.FLOAT16
        return TableType.INT8 if self.weight.dtype == torch.int8 else TableType.INT4

    def forward(self, ids: Tensor) -> Tensor:
        """Rows as float32: ids, int64 of any shape (...), to (..., D)."""
        rows = self._numbers(self.weight[ids]).float()
        return rows if self.scale is None else rows * self.scale[ids][..., None].float()

    def _numbers(self, stored: Tensor) -> Tensor:
        """What numbers in memory stand for: (..., D)."""
        if self.kind is not TableType.INT4:
            return stored
        both = torch.stack([stored & 15, stored >> 4], dim=-1).flatten(-2)
        return (both ^ 8).to(torch.int8) - 8

    def to_float32(self) -> Tensor:
        """The whole table, float32 (V, D)."""
        table = huge_pages.empty((self.num_embeddings, self.embedding_dim))
        for begin in range(0, self.num_embeddings, _BLOCK):
            table[begin : begin + _BLOCK].copy_(self._numbers(self.weight[begin : begin + _BLOCK]))
        return table if self.scale is None else table.mul_(self.scale[:, None].to(table.device))

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.num_embeddings}, {self.embedding_dim}, {self.kind.value}"


def in_torch(table: Table) -> Tensor | CompactEmbedding:
    """A copy in huge pages: float32 (V, D), or a compact table where there are kernels that read it as it is."""
    if table.kind is not TableType.FLOAT32 and kernels() is None:
        table = table.converted(TableType.FLOAT32)
    weight = huge_pages.copy_of(torch.from_numpy(table.weight))
    if table.kind is TableType.FLOAT32:
        return weight
    return CompactEmbedding(weight, None if table.scale is None else torch.from_numpy(table.scale))


def is_finite(table: Tensor) -> bool:
    """Whether no component is infinite or NaN: their sum shows it, without a second table and 20 times as fast."""
    return bool(torch.isfinite(table.sum(dtype=torch.float32)) or torch.isfinite(table).all())
