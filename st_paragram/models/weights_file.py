"""`model.safetensors` of a model directory: an embedding table in the names that the stock reader knows.

| table | tensors |
|---|---|
| float32, float16 | `embedding.weight` (V, D) |
| int8 | `embeddings`, int8 (V, D), and `weights`, float32 (V,): what each row is multiplied by |

Beside them stands `unknown_embedding`, float32 (D,), the row of the unknown id, which is zero in the table.
The names of int8 tables are model2vec's; `StaticEmbedding` reads them since sentence-transformers 6.2.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from st_paragram.damage import DAMAGED, one_line
from st_paragram.errors import ModelDirectoryError
from st_paragram.modules.compact_embedding import CompactEmbedding, TableType, is_finite
from st_paragram.native import huge_pages, kernels

_TYPES = {TableType.FLOAT32: torch.float32, TableType.FLOAT16: torch.float16, TableType.INT8: torch.int8}
_UNKNOWN = "unknown_embedding"


def write_weights(path: Path, table: Tensor | CompactEmbedding, unknown_id: int) -> None:
    """Write a table, float32 (V, D) or compact, whose row `unknown_id` is that of the unknown id."""
    weight = (table if isinstance(table, Tensor) else table.weight).clone()
    weight[unknown_id] = 0
    if isinstance(table, Tensor):
        save_file({"embedding.weight": weight, _UNKNOWN: table[unknown_id].clone()}, path)
        return
    unknown = table(torch.tensor(unknown_id))
    if table.scale is None:
        save_file({"embedding.weight": weight, _UNKNOWN: unknown}, path)
    else:
        save_file({"embeddings": weight, "weights": table.scale.contiguous(), _UNKNOWN: unknown}, path)


def read_weights(
    path: Path, shape: tuple[int, int], kind: TableType, unknown_id: int, truncate_dim: int | None = None
) -> Tensor | CompactEmbedding:
    """Read what `write_weights` wrote, in one copy, with the row of the unknown id put back.

    Args:
        path: a safetensors file.
        shape: (V, D) that the table must have.
        kind: how its numbers must be stored.
        unknown_id: the row to put back.
        truncate_dim: keep this many components of each row.

    Returns:
        float32 (V, D'), or a compact table (V, D').

    Raises:
        ModelDirectoryError: the file is damaged, or holds another table.
    """
    names = ("embeddings", "weights", _UNKNOWN) if kind is TableType.INT8 else ("embedding.weight", _UNKNOWN)
    try:
        with safe_open(path, "pt") as file:
            _check_shape(path, tuple(file.get_slice(names[0]).get_shape()), shape)
            stored, *scales, unknown = (file.get_tensor(name) for name in names)
    except (SafetensorError, *DAMAGED) as error:
        reason = one_line(error)
        raise ModelDirectoryError(
            f"{path}: not the weights of a st_paragram model ({reason}); save it again"
        ) from error
    if stored.dtype != _TYPES[kind]:
        raise ModelDirectoryError(f"{path}: a table of {stored.dtype}, expected {kind.value}; save the model again")
    if unknown.shape != stored.shape[1:] or any(scale.shape != stored.shape[:1] for scale in scales):
        raise ModelDirectoryError(f"{path}: damaged weights (parts of different sizes); save the model again")
    weight, unknown = huge_pages.copy_of(stored[:, :truncate_dim]), unknown[:truncate_dim]
    floats = [unknown, *scales] if scales else [unknown, weight]
    if not all(map(is_finite, floats)) or any((scale < 0).any() for scale in scales):
        raise ModelDirectoryError(f"{path}: damaged weights (NaN, infinite or negative scales); save the model again")
    if not scales:
        weight[unknown_id] = unknown
        return weight if kind is TableType.FLOAT32 else _usable(CompactEmbedding(weight))
    scale = scales[0].float().clone()
    weight[unknown_id] = (
        (unknown / scale[unknown_id].clamp_min(torch.finfo(torch.float32).tiny)).round_().clamp_(-127, 127)
    )
    return _usable(CompactEmbedding(weight, scale))


def _check_shape(path: Path, found: tuple[int, ...], expected: tuple[int, int]) -> None:
    if found != expected:
        raise ModelDirectoryError(f"{path}: a table of shape {found}, expected {expected}; save the model again")


def _usable(table: CompactEmbedding) -> Tensor | CompactEmbedding:
    """The table, as float32 where no compiled kernel can read it faster as it is."""
    return table if kernels() is not None else table.to_float32()
