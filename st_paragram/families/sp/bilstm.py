"""Bidirectional LSTM over token embeddings, without padding: the encoder of BLSTM-SP (ACL 2019)."""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import LSTM
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from st_paragram.errors import SettingsError
from st_paragram.learning.modules.flat_features import FlatFeatures, FlatStates

# Texts of similar length that run together on a CPU: what they leave for the backward pass stays in the cache, which
# takes a quarter off that pass for a batch of 512. Accelerators run all texts at once.
_TEXTS_A_RUN = 96


class BiLSTM(LSTM):
    """One layer in both directions from zero states, with torch's initial weights; stock weights, stock names.

    Behind `TokenEmbedding` no text is padded, and `MeanPool` averages the states; other features go the way of `LSTM`.
    """

    config_keys: list[str] = ["embedding_dimension", "hidden_dim"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "bilstm_config.json"

    def __init__(self, embedding_dimension: int, hidden_dim: int = 150) -> None:
        """Make the layer.

        Args:
            embedding_dimension: components of a token's embedding.
            hidden_dim: components of a state of one direction; a token's two states are concatenated.

        Raises:
            SettingsError: a dimension below 1.
        """
        if min(embedding_dimension, hidden_dim) < 1:
            raise SettingsError(f"dimensions of {embedding_dimension} and {hidden_dim}; both must be at least 1")
        super().__init__(embedding_dimension, hidden_dim)

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        """Put the states, float (total, 2 * hidden_dim) or padded, in the place of the tokens' embeddings."""
        if not isinstance(features, FlatFeatures) or "cu_seq_lens_q" not in features:
            return super().forward(features)
        device = features["input_ids"].device
        offsets = features["cu_seq_lens_q"].cpu()
        runs = _runs(offsets, _TEXTS_A_RUN if device.type == "cpu" else len(offsets))
        order = torch.cat([tokens for tokens, _ in runs]).to(device)
        embeddings = features.flat_token_embeddings(order).split([len(tokens) for tokens, _ in runs])
        packs = [PackedSequence(part, sizes) for part, (_, sizes) in zip(embeddings, runs, strict=True)]
        states = torch.cat([self.encoder(pack)[0].data for pack in packs])
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=device)
        return FlatStates(features, states, places)


def _runs(offsets: Tensor, texts_a_run: int) -> list[tuple[Tensor, Tensor]]:
    """What each run of the layer reads, long texts first.

    Args:
        offsets: int64 (B + 1,), where texts begin and end.
        texts_a_run: the most texts of one run.

    Returns:
        For each run its tokens' places among all tokens, int64, first tokens of all texts before second ones; and how
        many texts have a first token, a second one, and so on, int64: the batch sizes of a `PackedSequence`.
    """
    counts, order = offsets.diff().sort(descending=True, stable=True)
    begins = offsets[:-1][order]
    runs = []
    for lengths, firsts in zip(counts.split(texts_a_run), begins.split(texts_a_run), strict=True):
        steps = torch.arange(int(lengths[0]))[:, None]
        there = steps < lengths
        runs.append(((firsts + steps)[there], there.sum(1)))
    return runs
