"""Labels that show which texts of a batch are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from st_paragram.learning.training.batch_order import mix

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment of SplitMix64


def text_labels(ids: NDArray[np.integer[Any]], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Label texts, int64 (n,), with equal labels for equal ids (different texts share a label with
    probability 2^-64).

    `ids` are integers (total,), `offsets` int64 (n + 1,).
    """
    positions = np.arange(len(ids), dtype=np.uint64) - np.repeat(
        offsets[:-1], np.diff(offsets)
    ).astype(np.uint64)
    words = mix(mix(positions + _GOLDEN) ^ ids.astype(np.uint64))
    labels = np.zeros(len(offsets) - 1, np.int64)
    has_ids = offsets[:-1] < offsets[1:]  # `reduceat` would give an empty text the next word
    if has_ids.any():
        labels[has_ids] = np.add.reduceat(words, offsets[:-1][has_ids]).view(np.int64)
    return labels


def labels_of_features(columns: Sequence[dict[str, Tensor]]) -> list[Tensor]:
    """Label texts, int64 (B,) for each column, from the features of any pipeline.

    Features of a column are concatenated ids with `cu_seq_lens_q` (this package, or flash attention
    in sentence-transformers) or with `offsets` (`StaticEmbedding`), or padded ids with
    `attention_mask`.
    """
    labels = []
    for features in columns:
        ids, offsets = _flat(features)
        numbers = torch.from_numpy(text_labels(ids.cpu().numpy(), offsets.cpu().numpy()))
        labels.append(numbers.to(ids.device))
    return labels


def _flat(features: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the ids of all texts in a row, and the offsets of the texts, int64 (B + 1,)."""
    ids = features["input_ids"]
    if "cu_seq_lens_q" in features:
        return ids.reshape(-1), features["cu_seq_lens_q"].long()
    if "offsets" in features:
        end = torch.tensor([ids.numel()], device=ids.device)
        return ids.reshape(-1), torch.cat([features["offsets"], end])
    mask = features["attention_mask"].bool()
    return ids[mask], torch.cat([mask.new_zeros(1, dtype=torch.long), mask.sum(1).cumsum(0)])
