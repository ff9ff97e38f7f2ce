"""Inference: how often a model's own classifier says rightly what a premise means for a hypothesis.

Models without one, those that were not trained on inference, are left out.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sentence_transformers import SentenceTransformer

from st_paragram.families.muse.nli_files import LabelledPairs
from st_paragram.families.muse.towers import NLI_LABELS
from st_paragram.tools.evaluation.benchmark_runs import score_each


@dataclass(frozen=True)
class NliResult:
    """A model: set -> accuracy, a share; seconds of all."""

    sets: dict[str, float]
    seconds: float | None = None


@dataclass(frozen=True)
class NliRun:
    """Models on inference.

    Args:
        models: name -> result.
        pairs: set -> their number.
        majority: set -> the share of its most frequent label.
        left_out: models that have no classifier.
    """

    benchmark: ClassVar[str] = "nli"
    models: dict[str, NliResult]
    pairs: dict[str, int]
    majority: dict[str, float]
    left_out: tuple[str, ...] = ()


def run_nli(names: Sequence[str], sets: Sequence[LabelledPairs]) -> NliRun:
    """Score models that have a classifier.

    Raises:
        ModelDirectoryError: a model is not there or cannot be read.
    """
    found = score_each(names, lambda model: score_nli(model, sets), untrained=False)
    results = {name: result for name, result in found.items() if result is not None}
    pairs = {each.name: len(each.labels) for each in sets}
    majority = {each.name: max(Counter(each.labels).values()) / len(each.labels) for each in sets}
    return NliRun(results, pairs, majority, tuple(name for name in found if name not in results))


def score_nli(model: SentenceTransformer, sets: Sequence[LabelledPairs]) -> NliResult | None:
    """Accuracy of a model on each set; None for a model without a classifier."""
    if not getattr(model, "has_classifier", False):
        return None
    started = time.perf_counter()
    return NliResult({each.name: accuracy(model, each) for each in sets}, time.perf_counter() - started)


def accuracy(model: SentenceTransformer, pairs: LabelledPairs) -> float:
    """Share of the pairs whose likeliest label is theirs, for a model with `classify` (see `DualEncoder`)."""
    classifier: Any = model
    probabilities = classifier.classify(list(pairs.premises), list(pairs.hypotheses))
    gold = np.array([NLI_LABELS.index(label) for label in pairs.labels])
    return float((probabilities.argmax(1) == gold).mean())
