"""Which texts of a batch are equal, read off the features of any pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor


def text_labels(columns: Sequence[dict[str, Tensor]]) -> tuple[Tensor, ...]:
    """Numbers of texts, equal where their ids are, in whichever column.

    Args:
        columns: features of B texts each: flat ids with `cu_seq_lens_q` (as modules of this package make them) or with
            `offsets` (`StaticEmbedding`), or padded ids with `attention_mask`.

    Returns:
        int64 (B,) for each column.
    """
    numbers: dict[tuple[int, ...], int] = {}
    return tuple(
        torch.tensor(
            [numbers.setdefault(text, len(numbers)) for text in _texts(features)],
            dtype=torch.long,
            device=features["input_ids"].device,
        )
        for features in columns
    )


def _texts(features: dict[str, Tensor]) -> list[tuple[int, ...]]:
    ids = features["input_ids"]
    if "attention_mask" in features and "cu_seq_lens_q" not in features:
        masks = features["attention_mask"].bool()
        return [tuple(row[mask].tolist()) for row, mask in zip(ids, masks, strict=True)]
    if "cu_seq_lens_q" in features:
        starts = features["cu_seq_lens_q"].tolist()
    else:
        starts = [*features["offsets"].tolist(), ids.numel()]
    flat = ids.reshape(-1).tolist()
    return [tuple(flat[start:stop]) for start, stop in pairwise(starts)]
