"""Smaller embedding matrices, only for encoding: float16, or int8 or int4 with scales of rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from st_paragram.core.embedding_table import Table, TableType
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError
from st_paragram.learning.modules import huge_pages

#: Types of weights that cannot be trained; uint8 holds two int4 components per byte.
COMPACT_TYPES = {torch.float16, torch.int8, torch.uint8}


class CompactEmbedding(nn.Module):
    """A table that cannot be trained: `weight`, (V, D), and for integers `scale`, float32 (V,).

    Row i stands for `weight[i]` or `weight[i] * scale[i]`. Results are float32. For int4, `weight`
    is uint8 (V, D / 2): the lower four bits of byte j are component 2j, the upper four 2j + 1, both
    from -8 to 7.
    """

    weight: Tensor
    scale: Tensor | None

    def __init__(self, weight: Tensor, scale: Tensor | None = None) -> None:
        """Take the table."""
        super().__init__()
        scales = None if scale is None else scale.shape
        expected_scales = None if weight.dtype == torch.float16 else weight.shape[:1]
        if weight.ndim != 2 or weight.dtype not in COMPACT_TYPES or scales != expected_scales:
            raise SettingsError(
                f"a table of {weight.dtype}, shape {tuple(weight.shape)}, with scales of shape"
                f" {scales}; give float16 without scales, or int8 or int4 (as uint8) with one scale"
                " per row"
            )
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        table = in_numpy(self)
        self.kind: TableType = table.kind
        self.embedding_dim: int = table.dimension

    def forward(self, ids: Tensor) -> Tensor:
        """Look up rows as float32 (..., D) for ids, int64 of any shape (...)."""
        numbers = self.weight[ids]
        if self.kind is TableType.INT4:
            both = torch.stack([numbers & 15, numbers >> 4], dim=-1).flatten(-2)
            numbers = (both ^ 8).to(torch.int8) - 8
        rows = numbers.float()
        return rows if self.scale is None else rows * self.scale[ids][..., None].float()


def in_torch(table: Table) -> Tensor | CompactEmbedding:
    """Copy a table to huge pages: float32 (V, D), or a compact table if kernels can read it."""
    if kernels() is None:
        table = table.converted(TableType.FLOAT32)
    weight = huge_pages.copy_of(torch.from_numpy(table.weight))
    if table.kind is TableType.FLOAT32:
        return weight
    return CompactEmbedding(weight, None if table.scale is None else torch.from_numpy(table.scale))


def in_numpy(embedding: nn.Embedding | CompactEmbedding) -> Table:
    """Convert a table to NumPy arrays, which share its memory on the CPU; bfloat16 is widened."""
    weight = embedding.weight.detach().cpu().contiguous()
    if not isinstance(embedding, CompactEmbedding):
        return Table(weight.float().numpy())
    if embedding.scale is None:
        return Table(weight.numpy())
    return Table(weight.numpy(), embedding.scale.detach().cpu().float().contiguous().numpy())


def is_finite(table: Tensor) -> bool:
    """Whether all values are finite: their sum shows it 20 times as fast without a second table."""
    return bool(torch.isfinite(table.sum(dtype=torch.float32)) or torch.isfinite(table).all())
