"""A table that was read from a model directory, as torch and its kernels take it."""

from __future__ import annotations

import torch
from torch import Tensor

from st_paragram.core.encoding.table import Table, TableType
from st_paragram.core.native import kernels
from st_paragram.learning.modules import huge_pages
from st_paragram.learning.modules.compact_embedding import CompactEmbedding


def in_torch(table: Table) -> Tensor | CompactEmbedding:
    """A copy in huge pages: float32 (V, D), or a compact table where there are kernels that read it as it is."""
    if table.kind is not TableType.FLOAT32 and kernels() is None:
        table = table.converted(TableType.FLOAT32)
    weight = huge_pages.copy_of(torch.from_numpy(table.weight))
    if table.kind is TableType.FLOAT32:
        return weight
    return CompactEmbedding(weight, None if table.scale is None else torch.from_numpy(table.scale))
