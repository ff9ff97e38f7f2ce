"""Features of unpadded texts: the ids of all texts one after another, and where each text begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from st_paragram.learning.modules.compact_embedding import CompactEmbedding

_PADDED = ("token_embeddings", "attention_mask", "sentence_lengths")


class FlatTokens(dict[str, Any], ABC):
    """Features of unpadded texts, with a vector for each of their tokens.

    Holds `input_ids`, int64 (1, total), and `cu_seq_lens_q`, int64 (B + 1,). The first look at `token_embeddings` makes
    padded features of them: `token_embeddings`, float (B, L, D), `attention_mask`, int64 (B, L), and
    `sentence_lengths`, int64 (B,). So `encode(..., output_value="token_embeddings")` and the stock modules (`Pooling`,
    `LSTM`) work, and nobody else pays for padding.
    """

    @abstractmethod
    def flat_token_embeddings(self) -> Tensor:
        """The tokens' vectors, float (total, D), text after text."""

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
        # Stock modules take features with this key for flat ones.
        del self["cu_seq_lens_q"], self["input_ids"]
        return self[key]


class FlatFeatures(FlatTokens):
    """Features of unpadded texts, with the embedding table that their ids refer to."""

    def __init__(
        self,
        features: dict[str, Any],
        embedding: nn.Embedding | CompactEmbedding,
        dropout: float = 0.0,
        sparse_gradient: bool = False,
    ) -> None:
        super().__init__(features)
        self.embedding = embedding
        self.table: Tensor = embedding.weight
        self.dropout = dropout
        self.sparse_gradient = sparse_gradient

    def flat_token_embeddings(self, order: Tensor | None = None) -> Tensor:
        """The tokens' embeddings after dropout, float (total, D).

        Args:
            order: places of the tokens, int64 (total,), in the order that their embeddings are wanted in; text after
                text if not given.
        """
        ids = self["input_ids"].view(-1)
        if order is not None:
            ids = ids[order]
        if isinstance(self.embedding, CompactEmbedding):
            return self.embedding(ids)
        tokens = F.embedding(ids, self.table, sparse=self.sparse_gradient)
        return F.dropout(tokens, self.dropout, training=self.dropout > 0)


class FlatStates(FlatTokens):
    """Features of unpadded texts, with an encoder's states of their tokens, in any order.

    Args:
        features: flat ones.
        states: float (total, D).
        places: int64 (total,): token i has states[places[i]].
    """

    def __init__(self, features: dict[str, Any], states: Tensor, places: Tensor) -> None:
        super().__init__(features)
        self.states = states
        self.places = places

    def flat_token_embeddings(self) -> Tensor:
        """The tokens' states, float (total, D)."""
        return self.states.index_select(0, self.places)


def flat_features(ids: NDArray[np.integer[Any]], offsets: NDArray[np.int64]) -> dict[str, Tensor]:
    """Features of B texts; their shapes are those that stock code knows.

    Args:
        ids: integers (total,).
        offsets: int64 (B + 1,): text i is ids[offsets[i]:offsets[i + 1]].

    Returns:
        `input_ids`, int64 (1, total), and `cu_seq_lens_q`, int64 (B + 1,).
    """
    return {
        "input_ids": torch.from_numpy(ids.astype(np.int64, copy=False))[None],
        "cu_seq_lens_q": torch.from_numpy(offsets),
    }


def join_features(columns: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Put the texts of several flat features one after another into one."""
    ends = [columns[0]["cu_seq_lens_q"]]
    for column in columns[1:]:
        ends.append(column["cu_seq_lens_q"][1:] + ends[-1][-1])
    return {
        "input_ids": torch.cat([column["input_ids"] for column in columns], dim=1),
        "cu_seq_lens_q": torch.cat(ends),
    }
