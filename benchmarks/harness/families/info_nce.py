"""InfoNCE for the table of an averaging model: the loss, and a training loop that ends with its processor time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from st_paragram.learning.training.mega_batch.schedule import text_labels
from torch import Tensor, nn

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.learning.losses.hardest_negatives import Precision, hardest_negatives
from st_paragram.learning.models.averaging import averaging_embedding

_CHUNK = 512  # rows of the similarities at a time, so that they stay in the cache


@dataclass(frozen=True)
class InfoNceSettings:
    """Settings of one training run.

    Args:
        batch_size: Pairs per step. Each sentence is compared with every translation in its batch.
        scale: Factor of the cosines, the inverse of the temperature.
        learning_rate: Adam's first rate, which falls to 0 linearly.
        mined: Batches in a mega-batch in which each sentence finds its hardest negative, a further candidate; 0: none.
        dropout: Probability of dropping a token.
    """

    batch_size: int = 2048
    scale: float = 20.0
    learning_rate: float = 0.02
    mined: int = 0
    dropout: float = 0.0


def symmetric_info_nce(
    a: Tensor, b: Tensor, scale: float, hard: tuple[Tensor, Tensor] | None = None, fast: bool = True
) -> Tensor:
    """Return the mean cross-entropy of finding row i of b from row i of a, and the reverse.

    Args:
        a: Unit vectors, float32 (n, D).
        b: Unit vectors of the translations, float32 (n, D).
        scale: Factor of the cosines, up to 80: every exponential must be a float32.
        hard: A mined negative for each row of a, and for each row of b: unit vectors, float32 (n, D) each.
        fast: Whether products are in bfloat16, which halves their time.
    """
    cosines = [(side * other).sum(1) for side, other in zip((a, b), hard or (), strict=False)]
    extra = torch.stack(cosines) if cosines else a.new_full((2, len(a)), -torch.inf)
    loss: Tensor = _InfoNce.apply(a, b, extra, scale, fast)  # type: ignore[no-untyped-call]
    return loss


class _InfoNce(torch.autograd.Function):
    """The loss with its gradient, from one exponential of each similarity."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, extra: Tensor, scale: float, fast: bool) -> Tensor:  # noqa: ANN401
        n = len(a)
        left, right = (a.bfloat16(), b.bfloat16()) if fast else (a, b)
        odds = torch.empty(n, n)
        further = (scale * (extra - 1)).exp_()
        of_a, of_b = further[0].clone(), further[1].clone()
        for start in range(0, n, _CHUNK):
            part = odds[start : start + _CHUNK]
            part.copy_(left[start : start + _CHUNK] @ right.T).sub_(1).mul_(scale).exp_()
            of_a[start : start + _CHUNK] += part.sum(1)
            of_b += part.sum(0)
        loss = (of_a.log().mean() + of_b.log().mean()) / 2 - scale * ((odds.diagonal().log() / scale).mean())
        to_a, to_b = torch.empty_like(a), torch.zeros_like(b)
        for start in range(0, n, _CHUNK):
            rows = slice(start, start + _CHUNK)
            part = odds[rows].mul_((1 / of_a[rows])[:, None] + 1 / of_b).to(left.dtype)
            to_a[rows] = part @ right
            to_b += (part.T @ left[rows]).float()
        half = scale / (2 * n)
        ctx.save_for_backward(half * (to_a - 2 * b), half * (to_b - 2 * a), half * further / torch.stack([of_a, of_b]))
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # noqa: ANN401
        to_a, to_b, to_extra = ctx.saved_tensors
        return gradient * to_a, gradient * to_b, gradient * to_extra, None, None


class InfoNceTrainer:
    """Trains the table of an averaging model on a store until a budget of processor time is used up.

    The rate falls with the time that is used, so that the schedule ends with the budget. Reading and mining count.

    Attributes:
        steps: Steps so far.
        pairs: Pairs trained on, with repetitions.
    """

    def __init__(self, model: SentenceTransformer, store: PairStore, settings: InfoNceSettings, seed: int) -> None:
        """Train `model`, whose table is changed in place."""
        embedding = averaging_embedding(model)
        assert embedding is not None
        self._store, self._settings = store, settings
        table = embedding.embedding.weight.data
        self._bag = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum", include_last_offset=True)
        self._adam = torch.optim.Adam(self._bag.parameters(), settings.learning_rate, fused=True)
        self._random = np.random.default_rng(seed)
        self._dropout = torch.Generator().manual_seed(seed)
        self.steps = self.pairs = 0

    def train(self, cpu_seconds: float) -> None:
        """Make steps until the process has used this much processor time."""
        size = self._settings.batch_size * max(self._settings.mined, 1)
        started = time.process_time()
        while True:
            order = self._random.permutation(len(self._store))
            for start in range(0, max(len(order) - size, 0) + 1, size):
                rows = order[start : start + size]
                hard = self._mine(rows) if self._settings.mined else None
                for first in range(0, len(rows), self._settings.batch_size):
                    used = time.process_time() - started
                    if used >= cpu_seconds:
                        return
                    self._adam.param_groups[0]["lr"] = self._settings.learning_rate * (1 - used / cpu_seconds)
                    part = slice(first, first + self._settings.batch_size)
                    self._step(rows[part], [of[part] for of in hard] if hard else None)

    def _step(self, rows: NDArray[np.int64], hard: list[NDArray[np.int64]] | None) -> None:
        a, b = (self._embed(side, rows, self._settings.dropout) for side in SIDES)
        negatives = None
        if hard is not None:
            of_a, of_b = hard  # the negative of a sentence is in the other language
            negatives = (self._embed("b", of_a, self._settings.dropout), self._embed("a", of_b, self._settings.dropout))
        symmetric_info_nce(a, b, self._settings.scale, negatives).backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self._adam.zero_grad(set_to_none=False)
        self.steps, self.pairs = self.steps + 1, self.pairs + len(rows)

    @torch.no_grad()
    def _mine(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """For each pair, the row whose second side is nearest to its first one, and the reverse."""
        labels = [torch.from_numpy(text_labels(*self._store.take(side, rows, np.int32))) for side in SIDES]
        a, b = (self._embed(side, rows) for side in SIDES)
        found = hardest_negatives(a, b, (labels[0], labels[1]), precision=Precision.AUTO)
        return [rows[of.numpy()] for of in found]

    def _embed(self, side: str, rows: NDArray[np.int64], dropout: float = 0.0) -> Tensor:
        tokens, offsets = (torch.from_numpy(array) for array in self._store.take(side, rows, np.int32))
        weights = (torch.rand(len(tokens), generator=self._dropout) >= dropout).float() if dropout else None
        return F.normalize(self._bag(tokens.long(), offsets.long(), per_sample_weights=weights), dim=1)
