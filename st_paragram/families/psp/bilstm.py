"""A bidirectional LSTM over texts without padding: the encoder of BLSTM-SP (ACL 2019)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import LSTM
from torch.nn.utils.rnn import PackedSequence

from st_paragram.learning.modules.flat_features import FlatFeatures

# Texts of similar length that run together on a CPU: few enough for the backward pass's data to
# stay in the cache.
_TEXTS_PER_RUN = 96


class BiLSTM(LSTM):
    """sentence-transformers' LSTM without padding after `TokenEmbedding`, before `MeanPool`.

    With padding, a training step would take four times as long, since the gradient copies all
    states once for each length that occurs. Weights and other features are the same as in the base
    class.
    """

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace the tokens' embeddings by states, float (total, 2 * hidden_dim)."""
        if not isinstance(features, FlatFeatures) or "cu_seq_lens_q" not in features:
            return super().forward(features)
        offsets = features["cu_seq_lens_q"].cpu()
        embeddings = features.flat_token_embeddings()
        counts, texts = offsets.diff().sort(descending=True, stable=True)
        size = _TEXTS_PER_RUN if embeddings.device.type == "cpu" else len(counts)
        positions = []
        batch_sizes = []
        for start in range(0, len(counts), size):
            lengths = counts[start : start + size]
            begins = offsets[texts[start : start + size]]
            # A packed sequence has the first tokens of all texts, then the second, and so on.
            places = torch.arange(int(lengths[0]))[:, None]
            inside = places < lengths
            positions.append((begins + places)[inside])
            batch_sizes.append(inside.sum(1))
        order = torch.cat(positions).to(embeddings.device)
        runs = embeddings[order].split([len(run) for run in positions])
        states = []
        for tokens, sizes in zip(runs, batch_sizes, strict=True):
            packed, _ = self.encoder(PackedSequence(tokens, sizes))
            states.append(packed.data)
        # The states become the embedding table, and the id of a token is the position of its state.
        table = torch.cat(states)
        embedding: Any = SimpleNamespace(weight=table, embedding_dim=table.shape[1])
        return FlatFeatures({**features, "input_ids": order.argsort()[None]}, embedding)
