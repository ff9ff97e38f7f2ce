"""Retrieval of translations by nearest neighbour (the Tatoeba task of Artetxe and Schwenk, TACL 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class RetrievalError:
    """Shares of sentences, 0 .. 1, whose nearest neighbour by cosine is not their translation."""

    forward: float
    backward: float

    @property
    def mean(self) -> float:
        """Mean of both directions: the task's error rate."""
        return (self.forward + self.backward) / 2


def retrieval_error(
    model: SentenceTransformer, first: Sequence[str], second: Sequence[str], block: int = 4096
) -> RetrievalError:
    """Look for each sentence's translation among all sentences of the other side.

    Args:
        model: any SentenceTransformer.
        first: n sentences.
        second: their translations, in the same order.
        block: rows compared at a time.
    """
    a, b = (
        model.encode(
            list(texts), batch_size=2048, normalize_embeddings=True, convert_to_tensor=True, show_progress_bar=False
        )
        for texts in (first, second)
    )
    return RetrievalError(_misses(a, b, block), _misses(b, a, block))


def _misses(queries: torch.Tensor, candidates: torch.Tensor, block: int) -> float:
    found = torch.cat([(part @ candidates.T).argmax(1) for part in queries.split(block)])
    return float((found != torch.arange(len(found), device=found.device)).float().mean())
