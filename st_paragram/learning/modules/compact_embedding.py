"""Smaller embedding matrices, only for encoding: float16, or int8 or int4 with one scale per row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from st_paragram.core.embedding_table import Table, TableType
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError
from st_paragram.learning.modules import huge_pages

#: Types of the weights of tables with scales; uint8 holds two components per byte.
INTEGERS = {torch.int8, torch.uint8}


class CompactEmbedding(nn.Module):
    """A table that cannot be trained: `weight`, float16 or int8 (V, D), and for int8 `scale`,
    float32 (V,).

    Row i stands for `weight[i]` or `weight[i] * scale[i]`. Results are float32. For int4, `weight`
    is uint8 (V, D / 2): the lower four bits of byte j are component 2j, the upper four 2j + 1, both
    from -8 to 7.
    """

    weight: Tensor
    scale: Tensor | None
    kind: TableType
    embedding_dim: int

    def __init__(self, weight: Tensor, scale: Tensor | None = None) -> None:
        """Take the table."""
        super().__init__()
        types = {torch.float16} if scale is None else INTEGERS
        if (
            weight.ndim != 2
            or weight.dtype not in types
            or (scale is not None and scale.shape != weight.shape[:1])
        ):
            scales = "no scales" if scale is None else f"scales of shape {tuple(scale.shape)}"
            seen = f"a table of {weight.dtype}, shape {tuple(weight.shape)}, with {scales}"
            raise SettingsError(
                f"{seen}; give float16 without, or int8 or int4 (as uint8) with one scale per row"
            )
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        integers = TableType.INT8 if weight.dtype == torch.int8 else TableType.INT4
        self.kind = TableType.FLOAT16 if scale is None else integers
        self.embedding_dim = weight.shape[1] * (2 if self.kind is TableType.INT4 else 1)

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
    """Convert a table to NumPy arrays, which share its memory on the CPU; other floats become
    float32.
    """
    weight, scale = embedding.weight.detach().cpu(), None
    if isinstance(embedding, CompactEmbedding):
        scale = (
            None
            if embedding.scale is None
            else embedding.scale.detach().cpu().float().contiguous().numpy()
        )
    else:
        weight = weight.float()
    return Table(weight.contiguous().numpy(), scale)


def is_finite(table: Tensor) -> bool:
    """Whether all values are finite: their sum shows it 20 times as fast and without a second
    table.
    """
    return bool(torch.isfinite(table.sum(dtype=torch.float32)) or torch.isfinite(table).all())
