"""InfoNCE against the margin loss, at equal processor time: a training loop with large batches, and its loss."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.core.data.pair_store import SIDES, PairStore

_NO = float("-inf")


@dataclass(frozen=True)
class InfoNceSettings:
    """One training run.

    Args:
        batch_size: pairs in a step; each sentence is compared with every translation of its batch.
        scale: the cosines are multiplied by it (1 / temperature).
        learning_rate: of Adam, falls to 0 linearly.
        mined: batches in a mega-batch, from which each sentence gets its hardest negative as a further candidate; 0
            for none.
        dropout: probability that a token is left out of its mean.
    """

    batch_size: int = 2048
    scale: float = 20.0
    learning_rate: float = 0.02
    mined: int = 0
    dropout: float = 0.0


def symmetric_info_nce(a: Tensor, b: Tensor, scale: float, hard_a: Tensor | None = None, hard_b: Tensor | None = None) -> Tensor:
    """The mean cross-entropy of finding b's row from a's and a's row from b's.

    Args:
        a, b: unit vectors of translations, float32 (n, D); row i of one translates row i of the other.
        scale: of the cosines.
        hard_a, hard_b: unit vectors (n, D) of a mined negative for each b and each a, which are one further candidate.
    """
    logits = scale * (a.bfloat16() @ b.bfloat16().T).float()  # half the time on CPUs with bfloat16
    forward, backward = logits, logits.T
    if hard_a is not None and hard_b is not None:
        forward = torch.cat([forward, scale * (a * hard_b).sum(1, keepdim=True)], 1)
        backward = torch.cat([backward, scale * (b * hard_a).sum(1, keepdim=True)], 1)
    target = torch.arange(len(a), device=a.device)
    return (F.cross_entropy(forward, target) + F.cross_entropy(backward, target)) / 2


class InfoNceTrainer:
    """Trains the table of an averaging model on a store until a budget of processor time is used up.

    The rate falls with the time that is used, so that the schedule ends with the budget. The time of everything in a
    step counts, that of reading included.

    Attributes:
        steps: made.
        pairs: trained on, those seen again included.
    """

    def __init__(self, model: SentenceTransformer, store: PairStore, settings: InfoNceSettings, seed: int) -> None:
        self._module, self._store, self._settings = model[0], store, settings
        weights = self._module.weight.detach() if hasattr(self._module, "weight") else _table(self._module)
        self._bag = nn.EmbeddingBag.from_pretrained(weights, freeze=False, mode="sum")
        self._adam = torch.optim.Adam(self._bag.parameters(), settings.learning_rate, fused=True)
        self._random = np.random.default_rng(seed)
        self._dropout = torch.Generator().manual_seed(seed)
        self.steps = self.pairs = 0

    def train(self, cpu_seconds: float) -> None:
        """Make steps until the process has used this much processor time, of all its threads."""
        started = time.process_time()
        while (used := time.process_time() - started) < cpu_seconds:
            order = self._random.permutation(len(self._store))
            size = self._settings.batch_size * max(self._settings.mined, 1)
            for start in range(0, max(len(order) - size, 0) + 1, size):
                used = time.process_time() - started
                if used >= cpu_seconds:
                    break
                self._mega_batch(np.sort(order[start : start + size]), 1 - used / cpu_seconds)

    def _mega_batch(self, rows: np.ndarray, share: float) -> None:
        self._adam.param_groups[0]["lr"] = self._settings.learning_rate * share
        rows = self._random.permutation(rows)
        hard = self._mine(rows) if self._settings.mined else None
        for start in range(0, len(rows), self._settings.batch_size):
            part = slice(start, start + self._settings.batch_size)
            batch = rows[part]
            a, b = (self._embed(side, batch, training=True) for side in SIDES)
            negatives = [None, None]
            if hard is not None:
                negatives = [self._embed(side, of[part], training=True) for side, of in zip(SIDES, hard, strict=True)]
            loss = symmetric_info_nce(a, b, self._settings.scale, *negatives)
            loss.backward()
            self._adam.step()
            self._adam.zero_grad(set_to_none=False)
            self.steps, self.pairs = self.steps + 1, self.pairs + len(batch)

    @torch.no_grad()
    def _mine(self, rows: np.ndarray) -> list[np.ndarray]:
        """For each pair, the row whose first side is nearest to its second one, and the other way round."""
        a, b = (self._embed(side, rows) for side in SIDES)
        similarities = a @ b.T
        similarities.fill_diagonal_(_NO)
        return [rows[similarities.argmax(0).numpy()], rows[similarities.argmax(1).numpy()]]

    def _embed(self, side: str, rows: np.ndarray, training: bool = False) -> Tensor:
        ids, offsets = self._store.take(side, rows, np.int32)
        tokens, starts = torch.from_numpy(np.asarray(ids, np.int64)), torch.from_numpy(np.asarray(offsets[:-1], np.int64))
        weights = None
        if training and self._settings.dropout:
            weights = (torch.rand(len(tokens), generator=self._dropout) >= self._settings.dropout).float()
        return F.normalize(self._bag(tokens, starts, per_sample_weights=weights), dim=1)


def _table(module: nn.Module) -> Tensor:
    (table,) = module.parameters()
    return table.detach()
