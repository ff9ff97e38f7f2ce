"""A bidirectional LSTM over texts without padding: the encoder of BLSTM-SP (ACL 2019)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import LSTM
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from st_paragram.learning.modules.flat_features import FlatFeatures

# Texts of similar length that run together on a CPU: few enough for the backward pass's data to
# stay in the cache.
_TEXTS_A_RUN = 96


class BiLSTM(LSTM):
    """sentence-transformers' LSTM without padding after `TokenEmbedding`; `MeanPool` averages the
    states.

    With padding, a training step would take four times as long, since the gradient copies all
    states once for each length that occurs. Weights and other features are the same as in the base
    class.
    """

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace the tokens' embeddings by states, float (total, 2 * hidden_dim)."""
        if not isinstance(features, FlatFeatures) or "cu_seq_lens_q" not in features:
            return super().forward(features)
        offsets, device = features["cu_seq_lens_q"].cpu(), features["input_ids"].device
        counts, texts = offsets.diff().sort(descending=True, stable=True)
        size = _TEXTS_A_RUN if device.type == "cpu" else len(counts)
        # For each run: positions of its tokens, ordered by their index in the text, and the number
        # of texts per index.
        places, sizes = list[Tensor](), list[Tensor]()
        for lengths, begins in zip(counts.split(size), offsets[texts].split(size), strict=True):
            steps = torch.arange(int(lengths[0]))[:, None]
            places.append((begins + steps)[steps < lengths])
            sizes.append((steps < lengths).sum(1))
        order = torch.cat(places).to(device)
        tokens = features.flat_token_embeddings()[order].split([len(run) for run in places])
        packs = map(PackedSequence, tokens, sizes)
        states = torch.cat([self.encoder(pack)[0].data for pack in packs])
        # The states become the embedding table, and the id of a token is the position of its state.
        table: Any = SimpleNamespace(weight=states, embedding_dim=states.shape[1])
        return FlatFeatures({**features, "input_ids": order.argsort()[None]}, table)
