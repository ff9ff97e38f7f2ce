"""Mean of a text's token embeddings, without a tensor of all tokens' embeddings."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Module
from torch import Tensor

from st_paragram.learning.modules.flat_features import FlatFeatures, FlatStates
from st_paragram.learning.modules.row_means import row_means


class MeanPool(Module):
    """Mean pooling: one pass over the table behind `TokenEmbedding`, over the states behind `BiLSTM`.

    Behind any other module it is a masked mean.

    Example:
        >>> import torch
        >>> from st_paragram import MeanPool
        >>> tokens, mask = torch.tensor([[[1.0, 3.0], [3.0, 5.0]]]), torch.tensor([[1, 1]])
        >>> MeanPool(2)({"token_embeddings": tokens, "attention_mask": mask})["sentence_embedding"]
        tensor([[2., 4.]])
    """

    # Saved pipelines name the public path, which stays when files move.
    __module__ = "st_paragram"

    config_keys: list[str] = ["embedding_dimension"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "mean_pool_config.json"

    def __init__(self, embedding_dimension: int) -> None:
        """Pool embeddings of `embedding_dimension` components."""
        super().__init__()
        self.embedding_dimension = embedding_dimension

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.embedding_dimension

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        """Add `sentence_embedding`, float (B, D).

        Reads flat features (see `FlatTokens`), or padded `token_embeddings` (B, L, D) and `attention_mask` (B, L).
        """
        if isinstance(features, FlatFeatures) and "cu_seq_lens_q" in features:
            features["sentence_embedding"] = _flat_mean(features)
        elif isinstance(features, FlatStates) and "cu_seq_lens_q" in features:
            features["sentence_embedding"] = F.embedding_bag(
                features.places, features.states, features["cu_seq_lens_q"], mode="mean", include_last_offset=True
            )
        else:
            tokens = features["token_embeddings"]
            mask = features["attention_mask"].unsqueeze(-1).to(tokens.dtype)
            features["sentence_embedding"] = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:  # noqa: ANN401
        """Write the configuration."""
        self.save_config(output_path)


def _flat_mean(features: FlatFeatures) -> Tensor:
    ids, offsets = features["input_ids"].view(-1), features["cu_seq_lens_q"]
    if features.dropout > 0:  # each token has its own mask, so here the tokens' embeddings must exist
        every_token = torch.arange(len(ids), device=ids.device)
        return F.embedding_bag(
            every_token, features.flat_token_embeddings(), offsets, mode="mean", include_last_offset=True
        )
    if not (torch.is_grad_enabled() and features.table.requires_grad):
        return row_means(features.embedding, ids, offsets)
    if features.sparse_gradient:
        return _SparseMean.apply(features.table, ids, offsets)
    return F.embedding_bag(ids, features.table, offsets, mode="mean", include_last_offset=True)


class _SparseMean(torch.autograd.Function):
    """`embedding_bag` in mean mode whose gradient holds each row of the batch once.

    torch's own sparse gradient has one entry a token, four to five times as many, to be sorted and added up later;
    here the backward pass is an `embedding_bag` too, over the sentences that contain each row.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(ids, offsets)
        ctx.table_shape = table.shape
        return F.embedding_bag(ids, table, offsets, mode="mean", include_last_offset=True)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        ids, offsets = ctx.saved_tensors
        counts = offsets.diff()
        sentences = torch.arange(len(counts), device=ids.device).repeat_interleave(counts)
        sorted_ids, order = ids.sort(stable=True)
        rows, occurrences = sorted_ids.unique_consecutive(return_counts=True)
        values = F.embedding_bag(
            sentences[order],
            gradient / counts[:, None],
            F.pad(occurrences.cumsum(0), (1, 0)),
            mode="sum",
            include_last_offset=True,
        )
        return (
            torch.sparse_coo_tensor(rows[None], values, ctx.table_shape, is_coalesced=True, check_invariants=False),
            None,
            None,
        )
