"""English transfer tasks (SentEval, Conneau and Kiela 2018): a linear classifier on frozen embeddings.

Logistic regression on standardised embeddings. MR, CR, SUBJ and MPQA are cross-validated: each of ten folds is scored
by a classifier of the other nine, whose regularisation was chosen by learning from eight and scoring the ninth. TREC
chooses it on a tenth of its training sentences, then learns from all of them; SST2 has a development set of its own.
SentEval chooses by an inner cross-validation of nine folds, on embeddings that are not standardised.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sentence_transformers import SentenceTransformer

from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.benchmark_runs import score_each
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.linear_classifier import Examples, best_classifier, folds
from st_paragram.tools.evaluation.transfer_files import FOLDS, TransferTask

logger = logging.getLogger(__name__)

#: Values of C that are tried. SentEval's 2^-2 ... 2^3 are for embeddings that are not standardised.
STRENGTHS = tuple(2.0**power for power in range(-12, 0, 2))
_SEED = 0  # of the folds


@dataclass(frozen=True)
class TransferScore:
    """Accuracy on a task, a share; how many sentences were scored; C of each classifier."""

    accuracy: float
    sentences: int
    strengths: tuple[float, ...]


@dataclass(frozen=True)
class TransferResult:
    """A model: task -> score, and the seconds of all."""

    tasks: dict[str, TransferScore]
    seconds: float | None = None


@dataclass(frozen=True)
class TransferRun:
    """Models on the transfer tasks, and task -> what always answering the most frequent label has right."""

    benchmark: ClassVar[str] = "transfer"
    models: dict[str, TransferResult]
    majority: dict[str, float]


def run_transfer(names: Sequence[str], tasks: Sequence[TransferTask], untrained: bool = False) -> TransferRun:
    """Score models on transfer tasks.

    Args:
        names: of the models.
        tasks: to score them on.
        untrained: add random embeddings.

    Raises:
        EvaluationError: a model's embeddings are not finite.
        MissingExtraError: scikit-learn is not installed.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    require("sklearn", extra="probing", purpose="transfer")
    results = score_each(names, lambda model: _score(model, tasks), untrained)
    return TransferRun(results, {task.name: majority(task) for task in tasks})


def score_task(splits: dict[str, Examples]) -> TransferScore:
    """Learn, choose the regularisation and score, as the splits allow.

    Args:
        splits: "" alone (cross-validation), or "train", perhaps "dev", and "test".
    """
    if "" in splits:
        return _cross_validated(splits[""])
    train, test = splits["train"], splits["test"]
    if "dev" in splits:
        classifier = best_classifier(train, splits["dev"], STRENGTHS)
    else:
        parts = folds(train.labels, FOLDS, _SEED)
        classifier = best_classifier(train.take(_joined(parts[1:])), train.take(parts[0]), STRENGTHS).learn_on(train)
    count = len(test.labels)
    return TransferScore(classifier.right(test) / count, count, (classifier.strength,))


def majority(task: TransferTask) -> float:
    """Share of the sentences scored that have the label most frequent in training, the first of equally frequent."""
    train = task.splits.get("train") or task.splits[""]
    test = task.splits.get("test", train)
    counts = Counter(train.labels)
    label = min(counts, key=lambda each: (-counts[each], each))
    return test.labels.count(label) / len(test.labels)


def _cross_validated(examples: Examples) -> TransferScore:
    """Every sentence is scored once."""
    parts, right, strengths = folds(examples.labels, FOLDS, _SEED), 0, []
    for number, test in enumerate(parts):
        held_out = parts[(number + 1) % len(parts)]
        others = [part for part in parts if part is not test and part is not held_out]
        chosen = best_classifier(examples.take(_joined(others)), examples.take(held_out), STRENGTHS)
        right += chosen.learn_on(examples.take(_joined([*others, held_out]))).right(examples.take(test))
        strengths.append(chosen.strength)
    return TransferScore(right / len(examples.labels), len(examples.labels), tuple(strengths))


def _joined(parts: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.sort(np.concatenate(parts))


def _score(model: SentenceTransformer, tasks: Sequence[TransferTask]) -> TransferResult:
    started, scores = time.perf_counter(), {}
    for task in tasks:
        splits = {}
        for name, split in task.splits.items():
            vectors = embed(model, list(split.texts))
            if not np.isfinite(vectors).all():
                raise EvaluationError(f"{task.name}: embeddings are not finite; the model is broken")
            splits[name] = Examples(vectors, np.array(split.labels))
        scores[task.name] = score_task(splits)
        logger.info(f"  {task.name}: {100 * scores[task.name].accuracy:.1f}")
    return TransferResult(scores, time.perf_counter() - started)
