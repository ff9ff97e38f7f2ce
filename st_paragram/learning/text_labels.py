"""Labels that show which texts of a batch are equal, from the features of any pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor


def text_labels(columns: Sequence[dict[str, Tensor]]) -> list[Tensor]:
    """Label texts, int64 (B,) for each column, with equal labels for equal ids in any column.

    Features of a column are concatenated ids with `cu_seq_lens_q` (this package, or flash attention
    in sentence-transformers) or with `offsets` (`StaticEmbedding`), or padded ids with
    `attention_mask`.
    """
    numbers: dict[tuple[int, ...], int] = {}
    return [
        torch.tensor(
            [numbers.setdefault(text, len(numbers)) for text in _texts(features)], dtype=torch.long
        ).to(features["input_ids"].device)
        for features in columns
    ]


def _texts(features: dict[str, Tensor]) -> list[tuple[int, ...]]:
    ids = features["input_ids"]
    if "cu_seq_lens_q" in features:
        ends = features["cu_seq_lens_q"].tolist()
    elif "offsets" in features:
        ends = [*features["offsets"].tolist(), ids.numel()]
    else:
        masks = features["attention_mask"].bool()
        return [tuple(row[mask].tolist()) for row, mask in zip(ids, masks, strict=True)]
    flat = ids.reshape(-1).tolist()
    return [tuple(flat[begin:end]) for begin, end in pairwise(ends)]
