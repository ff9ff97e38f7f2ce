"""Means of table rows without a gradient: what a sentence embedding is."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from st_paragram.modules.compact_embedding import CompactEmbedding
from st_paragram.native import kernels


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
        return _by_kernel(embedding, ids, offsets, out, normalized)
    if isinstance(embedding, CompactEmbedding):
        every_token = torch.arange(len(ids), device=ids.device)
        means = F.embedding_bag(every_token, embedding(ids), offsets, mode="mean", include_last_offset=True)
    else:
        means = F.embedding_bag(ids, embedding.weight.detach(), offsets, mode="mean", include_last_offset=True)
    if normalized:
        means = F.normalize(means)
    return means if out is None else out.copy_(means)


def kernel_serves(embedding: nn.Embedding | CompactEmbedding) -> bool:
    """Whether the compiled kernels can read this table: one of their types, on the CPU, when they are there."""
    table = embedding.weight
    compact = isinstance(embedding, CompactEmbedding)
    return (
        type(table) in (Tensor, nn.Parameter)  # no wrapper, such as those of distributed training
        and table.device.type == "cpu"
        and table.dtype in ((torch.float16, torch.int8) if compact else (torch.float32,))
        and table.is_contiguous()
        and (not compact or embedding.scale is None or embedding.scale.dtype == torch.float32)
        and not torch.compiler.is_compiling()
        and table.data_ptr() % table.element_size() == 0  # not so in some files, which are mapped as they are
        and kernels() is not None
    )


def _by_kernel(
    embedding: nn.Embedding | CompactEmbedding, ids: Tensor, offsets: Tensor, out: Tensor | None, normalized: bool
) -> Tensor:
    if out is None:
        out = torch.empty(len(offsets) - 1, embedding.embedding_dim)
    table = embedding.weight.detach().numpy()
    arguments = (_narrow(ids), offsets.contiguous().numpy(), out.numpy(), normalized)
    threads = torch.get_num_threads()
    if isinstance(embedding, nn.Embedding):
        kernels().mean_rows(table, *arguments, threads)
    elif embedding.scale is None:
        kernels().mean_rows_f16(table.view(np.uint16), *arguments, threads)
    else:
        kernels().mean_rows_i8(table, embedding.scale.contiguous().numpy(), *arguments, threads)
    return out


def _narrow(ids: Tensor) -> NDArray[np.int32]:
    """Ids as the kernels take them; those that do not fit would become others, and are refused."""
    wide = ids.contiguous().numpy()
    narrow = wide.astype(np.int32, copy=False)
    if narrow is not wide and not np.array_equal(narrow, wide):
        raise ValueError(f"ids from {wide.min()} to {wide.max()}; no table has so many rows")
    return narrow
