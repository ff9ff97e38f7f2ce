"""Sentences of different lengths as one padded array of ids with end markers, for transformers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from st_paragram.learning.modules.transformer_encoder import SpecialIds


@dataclass(frozen=True)
class SentenceBatch:
    """B sentences of at most L ids."""

    ids: Tensor  # int64 (B, L): each sentence, its end id, and padding
    mask: Tensor  # bool (B, L): False for padding
    special: SpecialIds

    @classmethod
    def of(
        cls,
        ids: NDArray[np.integer[Any]],
        offsets: NDArray[np.int64],
        special: SpecialIds,
        max_length: int,
    ) -> SentenceBatch:
        """Make a batch from flat ids: sentence i is ids[offsets[i]:offsets[i + 1]].

        Longer sentences are truncated to `max_length`, including the end id.
        """
        counts = np.minimum(np.diff(offsets), max_length - 1)
        columns = np.arange(int(counts.max(initial=0)) + 1)[None]
        inside = columns < counts[:, None]
        rows = np.full(inside.shape, special.pad, np.int64)
        rows[inside] = ids[(offsets[:-1, None] + columns)[inside]]
        rows[np.arange(len(counts)), counts] = special.end
        return cls(torch.from_numpy(rows), torch.from_numpy(columns <= counts[:, None]), special)

    def to(self, device: torch.device | str) -> SentenceBatch:
        """Move the batch to a device."""
        return SentenceBatch(self.ids.to(device), self.mask.to(device), self.special)

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.ids)

    @property
    def previous(self) -> Tensor:
        """The decoder's input, int64 (B, L): the end id, then all ids except the last."""
        start = self.ids.new_full((len(self.ids), 1), self.special.end)
        return torch.cat([start, self.ids[:, :-1]], 1)

    @cached_property
    def targets(self) -> Tensor:
        """The decoder's targets, int64 (N,): the ids of all sentences, including end ids."""
        return self.ids[self.mask]

    @cached_property
    def sentences(self) -> Tensor:
        """The sentence of each target, int64 (N,)."""
        rows = torch.arange(len(self.ids), device=self.ids.device)
        return rows.repeat_interleave(self.mask.sum(1), output_size=len(self.targets))
