"""Retrieval of translations by nearest neighbour (the Tatoeba task of Artetxe and Schwenk, TACL 2019)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from st_paragram.errors import EvaluationError
from st_paragram.tools.bitext_mining.candidates import best_neighbours
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.results import RetrievalError, RetrievalScores, TatoebaResult
from st_paragram.tools.evaluation.translations import Translations
from st_paragram.tools.search.nearest import nearest_both_ways
from st_paragram.tools.search.neighbours import Vectors

Rows = NDArray[np.int64]


def retrieval_error(
    model: SentenceTransformer, first: Sequence[str], second: Sequence[str], block: int = 4096
) -> RetrievalError:
    """Look for each sentence's translation among all sentences of the other side, by cosine, with torch alone.

    Args:
        model: any SentenceTransformer.
        first: n sentences.
        second: their translations, in the same order.
        block: rows compared at a time.
    """
    a, b = (torch.from_numpy(embed(model, list(texts))) for texts in (first, second))
    ahead, back = (
        torch.cat([(part @ other.T).argmax(1) for part in own.split(block)]).numpy() for own, other in ((a, b), (b, a))
    )
    return RetrievalError(_misses(ahead), _misses(back))


def retrieval_scores(first: Vectors, second: Vectors, k: int = DEFAULT_K) -> RetrievalScores:
    """Score the retrieval of translations in both directions.

    Args:
        first: embeddings of n sentences, float32 (n, D), rows of length 1.
        second: those of their translations, in the same order.
        k: neighbours that make a margin's background, fewer if there are not as many sentences.

    Raises:
        EvaluationError: the sides differ in number, or as `nearest_neighbours`.
    """
    if len(first) != len(second):
        raise EvaluationError(f"{len(first)} sentences and {len(second)} translations; each needs its translation")
    forward, backward = nearest_both_ways(first, second, k)
    ahead, back = forward.indices[:, 0], backward.indices[:, 0]
    found = found_by_mteb(first, second)
    ahead_by_margin, _ = best_neighbours(forward, backward, Margin.RATIO)
    back_by_margin, _ = best_neighbours(backward, forward, Margin.RATIO)
    return RetrievalScores(
        len(first),
        RetrievalError(_misses(ahead), _misses(back)),
        RetrievalError(_misses(ahead_by_margin), _misses(back_by_margin)),
        float((found == np.arange(len(found))).mean()),
        weighted_f1(found),
    )


def score_tatoeba(model: SentenceTransformer, sets: Sequence[Translations], k: int = DEFAULT_K) -> TatoebaResult:
    """Score the retrieval of translations in several sets; errors as of `retrieval_scores`.

    Args:
        model: any SentenceTransformer.
        sets: the test sets, with names.
        k: neighbours that make a margin's background.
    """
    started = time.perf_counter()
    found = {pairs.name: retrieval_scores(embed(model, pairs.first), embed(model, pairs.second), k) for pairs in sets}
    return TatoebaResult(found, time.perf_counter() - started)


def found_by_mteb(first: Vectors, second: Vectors) -> Rows:
    """Nearest neighbours with the operations of mteb 2 (its `BitextMiningEvaluator`), int64 (n,).

    Sentences with the same words have one vector; which of them is "nearest" is a matter of rounding there, so only
    the same products in the same blocks of queries give the same figures.
    """
    from sentence_transformers.util import cos_sim

    corpus = torch.from_numpy(second)
    blocks = torch.from_numpy(first).split(100)
    return torch.cat([cos_sim(block, corpus).topk(1, sorted=False).indices[:, 0] for block in blocks]).numpy()


def weighted_f1(found: Rows) -> float:
    """F1 as mteb counts it: sentences as classes of one member each, the mean of their F1.

    A class whose one member was found has recall 1 and, if c queries in all chose it, precision 1 / c.

    Args:
        found: for each of n queries the row chosen, right if it is the query's own number, int64 (n,).
    """
    hits = found == np.arange(len(found))
    chosen = np.bincount(found, minlength=len(found))[: len(found)]
    return float(np.where(hits, 2 / (1 + chosen), 0.0).mean())


def _misses(found: Rows) -> float:
    return float((found != np.arange(len(found))).mean())
