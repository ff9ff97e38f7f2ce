"""Means of table rows without a gradient: what a sentence embedding is."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_paragram.core.encoding.table import Table
from st_paragram.core.native import kernels
from st_paragram.learning.modules.compact_embedding import INTEGERS, CompactEmbedding


def row_means(
    embedding: nn.Embedding | CompactEmbedding,
    ids: Tensor,
    offsets: Tensor,
    out: Tensor | None = None,
    normalized: bool = False,
) -> Tensor:
    """Mean of the rows of each text, by the compiled kernel where it serves, else by torch.

    Args:
        embedding: the table, (V, D).
        ids: integers (total,), on the table's device.
        offsets: int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]]; without an id its mean is zero.
        out: a contiguous tensor (N, D) for the result, of the result's type.
        normalized: scale each mean to length 1.

    Returns:
        (N, D), of the table's type, float32 for compact tables; `out` if given.

    Raises:
        ValueError, RuntimeError: an id outside the table, or offsets that do not fit the ids.
    """
    if kernel_serves(embedding):
        out = torch.empty(len(offsets) - 1, embedding.embedding_dim) if out is None else out
        arrays = (ids.contiguous().numpy(), offsets.contiguous().numpy(), out.numpy())
        in_numpy(embedding).fill_means(*arrays, normalized, torch.get_num_threads())
        return out
    if isinstance(embedding, CompactEmbedding):
        every_token = torch.arange(len(ids), device=ids.device)
        means = F.embedding_bag(every_token, embedding(ids), offsets, mode="mean", include_last_offset=True)
    else:
        means = F.embedding_bag(ids, embedding.weight.detach(), offsets, mode="mean", include_last_offset=True)
    if normalized:
        means = F.normalize(means)
    return means if out is None else out.copy_(means)


def kernel_serves(embedding: nn.Embedding | CompactEmbedding) -> bool:
    """Whether the compiled kernels can read this table, and are there."""
    return is_plain(embedding) and kernels() is not None


def is_plain(embedding: nn.Embedding | CompactEmbedding) -> bool:
    """Whether a table can be read as it is: on the CPU, of a type that `Table` has, not wrapped by anything."""
    table = embedding.weight
    compact = isinstance(embedding, CompactEmbedding)
    return (
        type(table) in (Tensor, nn.Parameter)  # no wrapper, such as those of distributed training
        and table.device.type == "cpu"
        and table.dtype in ({torch.float16, *INTEGERS} if compact else {torch.float32})
        and table.is_contiguous()
        and (not compact or embedding.scale is None or embedding.scale.dtype == torch.float32)
        and not torch.compiler.is_compiling()
        and table.data_ptr() % table.element_size() == 0  # not so in some files, which are mapped as they are
    )


def in_numpy(embedding: nn.Embedding | CompactEmbedding) -> Table:
    """The table in NumPy arrays, which share its memory where it is on the CPU; other floats become float32."""
    weight, scale = embedding.weight.detach().cpu(), None
    if isinstance(embedding, CompactEmbedding):
        scale = None if embedding.scale is None else embedding.scale.detach().cpu().float().contiguous().numpy()
    else:
        weight = weight.float()
    return Table(weight.contiguous().numpy(), scale)
