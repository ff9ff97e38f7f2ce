"""Labels that show which texts of a batch are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from st_paragram.learning.training.batch_order import GOLDEN, mix


def text_labels(ids: NDArray[np.integer[Any]], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Label texts, int64 (n,): equal ids get equal labels.

    Different texts share a label with probability 2^-64. `ids` are integers (total,), `offsets`
    int64 (n + 1,).
    """
    starts = offsets[:-1]
    counts = np.diff(offsets)
    places = np.arange(len(ids)) - np.repeat(starts, counts)
    words = mix(mix(places.astype(np.uint64) + GOLDEN) ^ ids.astype(np.uint64))
    labels = np.zeros(len(counts), np.int64)
    has_ids = counts > 0  # `reduceat` would give an empty text the next word
    if has_ids.any():
        labels[has_ids] = np.add.reduceat(words, starts[has_ids]).view(np.int64)
    return labels


def labels_of_features(columns: Sequence[dict[str, Tensor]]) -> list[Tensor]:
    """Label texts, int64 (B,) for each column, from the features of any pipeline.

    Features of a column are concatenated ids with `cu_seq_lens_q` (this package, or flash attention
    in sentence-transformers) or with `offsets` (`StaticEmbedding`), or padded ids with
    `attention_mask`.
    """
    labels = []
    for features in columns:
        ids = features["input_ids"]
        if "cu_seq_lens_q" in features:
            offsets = features["cu_seq_lens_q"].long()
        elif "offsets" in features:
            offsets = F.pad(features["offsets"], (0, 1), value=ids.numel())
        else:
            mask = features["attention_mask"].bool()
            ids = ids[mask]
            offsets = F.pad(mask.sum(1).cumsum(0), (1, 0))
        numbers = text_labels(ids.reshape(-1).cpu().numpy(), offsets.cpu().numpy())
        labels.append(torch.from_numpy(numbers).to(ids.device))
    return labels
