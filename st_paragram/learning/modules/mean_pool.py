"""Mean of a text's token embeddings, without storing the embeddings of all tokens."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Module
from torch import Tensor, nn

from st_paragram.core.native import kernels
from st_paragram.learning.modules.compact_embedding import COMPACT_TYPES, CompactEmbedding, in_numpy
from st_paragram.learning.modules.flat_features import FlatFeatures


class MeanPool(Module):
    """Mean pooling, in one pass over the embedding matrix if it follows `TokenEmbedding`.

    Examples:
        >>> import torch
        >>> from st_paragram import MeanPool
        >>> tokens, mask = torch.tensor([[[1.0, 3.0], [3.0, 5.0]]]), torch.tensor([[1, 1]])
        >>> MeanPool(2)({"token_embeddings": tokens, "attention_mask": mask})["sentence_embedding"]
        tensor([[2., 4.]])
    """

    # Saved pipelines use the public name, which stays valid when files move.
    __module__ = "st_paragram"

    config_keys: list[str] = ["embedding_dimension"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "mean_pool_config.json"

    def __init__(self, embedding_dimension: int) -> None:
        """Pool embeddings with `embedding_dimension` dimensions."""
        super().__init__()
        self.embedding_dimension = embedding_dimension

    def get_embedding_dimension(self) -> int:
        """Dimension of the embeddings."""
        return self.embedding_dimension

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding`, float (B, D).

        Reads `FlatFeatures`, or padded `token_embeddings` (B, L, D) and `attention_mask` (B, L).
        """
        if not isinstance(features, FlatFeatures) or "cu_seq_lens_q" not in features:
            tokens = features["token_embeddings"]
            mask = features["attention_mask"].unsqueeze(-1).to(tokens.dtype)
            features["sentence_embedding"] = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return features
        ids = features["input_ids"].view(-1)
        offsets = features["cu_seq_lens_q"]
        if features.dropout:
            # Each token has its own mask, so the tokens' embeddings must be computed.
            tokens = features.flat_token_embeddings()
            means = _means(tokens, torch.arange(len(ids), device=ids.device), offsets)
        else:
            means = row_means(features.embedding, ids, offsets)
        if means.requires_grad:
            # Means of zeros, of texts without a known token, have no direction. The gradient of
            # their cosine would be huge, and would change the row of the unknown id.
            is_known = means.detach().any(dim=1, keepdim=True)
            means = torch.where(is_known, means, means.detach())
        features["sentence_embedding"] = means
        return features

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Write the configuration."""
        self.save_config(output_path)


def row_means(embedding: nn.Embedding | CompactEmbedding, ids: Tensor, offsets: Tensor) -> Tensor:
    """Average the rows of each text, (N, D), with the compiled kernel if no gradient is needed.

    Text i is ids[offsets[i]:offsets[i + 1]]; without ids its mean is zero. Means of compact tables
    are float32.
    """
    needs_gradient = torch.is_grad_enabled() and embedding.weight.requires_grad
    if not needs_gradient and kernels() is not None and is_plain(embedding):
        means = in_numpy(embedding).means(
            ids.contiguous().numpy(),
            offsets.contiguous().numpy(),
            threads=torch.get_num_threads(),
        )
        return torch.from_numpy(means)
    if isinstance(embedding, CompactEmbedding):
        return _means(embedding(ids), torch.arange(len(ids), device=ids.device), offsets)
    return _means(embedding.weight, ids, offsets)


def _means(table: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
    return F.embedding_bag(ids, table, offsets, mode="mean", include_last_offset=True)


def is_plain(embedding: nn.Embedding | CompactEmbedding) -> bool:
    """Whether kernels can read a table directly: on the CPU, of a type that `Table` has."""
    table = embedding.weight
    if isinstance(embedding, CompactEmbedding):
        scale = embedding.scale
        has_type = table.dtype in COMPACT_TYPES and (scale is None or scale.dtype == torch.float32)
    else:
        has_type = table.dtype == torch.float32
    return (
        has_type
        and type(table) in (Tensor, nn.Parameter)  # no wrapper for distributed training
        and table.device.type == "cpu"
        and table.is_contiguous()
        and not torch.compiler.is_compiling()
        and table.data_ptr() % table.element_size() == 0  # some memory-mapped files are not aligned
    )
