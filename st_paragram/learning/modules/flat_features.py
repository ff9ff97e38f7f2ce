"""Features of unpadded texts: concatenated ids, and the beginning of each text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from st_paragram.learning.modules.compact_embedding import CompactEmbedding

_PADDED = ("token_embeddings", "attention_mask", "sentence_lengths")


class FlatFeatures(dict[str, Any]):
    """Features of unpadded texts, with the embedding table that their ids refer to.

    It holds `input_ids`, int64 (1, total), and `cu_seq_lens_q`, int64 (B + 1,). The first access to
    `token_embeddings` computes padded features: `token_embeddings`, float (B, L, D),
    `attention_mask`, int64 (B, L), and `sentence_lengths`, int64 (B,). So `encode(...,
    output_value="token_embeddings")` and the stock modules (`Pooling`, `LSTM`) work, and nothing
    else is padded.
    """

    def __init__(
        self,
        features: Mapping[str, Any],
        embedding: nn.Embedding | CompactEmbedding,
        dropout: float = 0.0,
    ) -> None:
        """Attach an embedding table; `dropout` is a probability."""
        super().__init__(features)
        self.embedding = embedding
        self.dropout = dropout

    def flat_token_embeddings(self) -> Tensor:
        """The tokens' embeddings after dropout, float (total, D), text after text."""
        ids = self["input_ids"].view(-1)
        if isinstance(self.embedding, CompactEmbedding):
            return self.embedding(ids)
        tokens = F.embedding(ids, self.embedding.weight)
        return F.dropout(tokens, self.dropout) if self.dropout else tokens

    def __missing__(self, key: str) -> Tensor:
        if key not in _PADDED or "cu_seq_lens_q" not in self:
            raise KeyError(key)
        counts = self["cu_seq_lens_q"].diff()
        mask = torch.arange(int(counts.max()), device=counts.device)[None] < counts[:, None]
        tokens = self.flat_token_embeddings()
        padded = tokens.new_zeros(*mask.shape, tokens.shape[1])
        self["token_embeddings"] = padded.masked_scatter(mask[:, :, None], tokens)
        self["attention_mask"] = mask.long()
        self["sentence_lengths"] = counts
        # Stock modules treat features with this key as flat.
        del self["cu_seq_lens_q"], self["input_ids"]
        return self[key]


def flat_features(ids: NDArray[np.integer[Any]], offsets: NDArray[np.int64]) -> dict[str, Tensor]:
    """Make features of B texts with transformers' names.

    These are `input_ids`, int64 (1, total), and `cu_seq_lens_q`, int64 (B + 1,).

    Args:
        ids: Integers (total,).
        offsets: int64 (B + 1,): text i is ids[offsets[i]:offsets[i + 1]].
    """
    return {
        "input_ids": torch.from_numpy(ids.astype(np.int64, copy=False))[None],
        "cu_seq_lens_q": torch.from_numpy(offsets),
    }


def is_flat(features: Mapping[str, Any]) -> bool:
    """Whether features have exactly the keys of `flat_features`, so that joining loses nothing.

    Features that sentence-transformers makes for flash attention have further keys, such as
    `position_ids`.
    """
    return features.keys() == {"input_ids", "cu_seq_lens_q"}


def join_features(columns: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Concatenate the texts of several flat features."""
    ids = torch.cat([column["input_ids"] for column in columns], dim=1)
    counts = torch.cat([column["cu_seq_lens_q"].diff() for column in columns])
    return {"input_ids": ids, "cu_seq_lens_q": F.pad(counts.cumsum(0), (1, 0))}
