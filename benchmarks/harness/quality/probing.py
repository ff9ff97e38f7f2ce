"""Probing: a linear classifier on frozen sentence embeddings says how much of a property they hold.

The classifier is SentEval's (Conneau et al. 2018), logistic regression with a regularisation chosen on the validation
split, here scikit-learn's on standardized features. BGT (Wieting et al., EMNLP 2020) does not name its own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness.quality.probing_bitext import bitext_tasks
from harness.quality.probing_conllu import conllu_tasks
from harness.quality.probing_senteval import senteval_tasks
from harness.quality.probing_tasks import ProbingSettings, ProbingTask, Source
from numpy.typing import NDArray
from scipy.stats import binomtest

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.linear_classifier import Examples, best_classifier
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.results import Interval

logger = logging.getLogger(__name__)

#: Inverse strengths of the L2 regularisation that are tried, weakest last: three of SentEval's 2^-2 ... 2^3.
STRENGTHS = (0.25, 1.0, 4.0)
_BATCH = 128  # sentences

_Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class ProbeScore:
    """What a probe has right of the test split.

    Attributes:
        accuracy: a share.
        interval: Wilson's 95 % interval of the accuracy.
        strength: C of the regression, chosen on the validation split; None for the majority.
    """

    accuracy: float
    interval: Interval
    strength: float | None = None

    @classmethod
    def of(cls, right: int, rows: int, strength: float | None = None) -> ProbeScore:
        """So many of `rows` answers are right."""
        ends = binomtest(right, rows).proportion_ci(method="wilson")
        return cls(right / rows, Interval(float(ends.low), float(ends.high)), strength)


@dataclass(frozen=True)
class TaskDescription:
    """A task as tables show it: its number of labels, the sentences of its splits, and what the majority scores."""

    name: str
    source: Source
    labels: int
    train: int
    valid: int
    test: int
    majority: ProbeScore

    @classmethod
    def of(cls, task: ProbingTask) -> TaskDescription:
        """The description of a task."""
        train, valid, test = (len(split.labels) for split in task.splits)
        return cls(task.name, task.source, len(set(task.train.labels)), train, valid, test, majority_score(task))


@dataclass(frozen=True)
class ProbingRun:
    """What was asked of which model.

    Attributes:
        tasks: by their titles.
        models: model -> title of a task -> score.
        notes: what was left out, in sentences without a final stop.
    """

    tasks: dict[str, TaskDescription]
    models: dict[str, dict[str, ProbeScore]]
    notes: tuple[str, ...] = ()


def find_tasks(
    senteval: Path | None, bitext: str | None, language: str | None, conllu: Path | None, settings: ProbingSettings
) -> tuple[list[ProbingTask], list[str]]:
    """Make the tasks of all that is given, and notes of what is left out.

    Raises:
        EvaluationError: nothing is given, something is missing or malformed, or there are too few sentences.
        TextError: the bitext cannot be read.
    """
    tasks: list[ProbingTask] = []
    notes: list[str] = []
    if senteval is not None:
        tasks, notes = senteval_tasks(senteval, settings)
    if bitext is not None:
        found, missing = bitext_tasks(bitext, language, settings)
        tasks, notes = tasks + found, notes + missing
    if conllu is not None:
        tasks = tasks + conllu_tasks(conllu, settings)
    if not tasks:
        raise EvaluationError("no tasks; give --senteval FOLDER, --bitext FILE.tsv, --conllu FOLDER, or several")
    return tasks, notes


def run_probing(
    names: Sequence[str], tasks: Sequence[ProbingTask], notes: Sequence[str] = (), untrained: bool = False
) -> ProbingRun:
    """Probe models, one in memory at a time.

    Args:
        names: of the models.
        tasks: to probe for.
        notes: to be kept with the results.
        untrained: add random embeddings over the first model's vocabulary.

    Raises:
        ModelDirectoryError: a model is not there or cannot be read.
        EvaluationError: a model's embeddings are not finite.
        MissingExtraError: scikit-learn is not installed.
    """
    require("sklearn", extra="probing", purpose="probing")
    scores = score_each(names, lambda model: probe(model, tasks), untrained)
    return ProbingRun({task.title: TaskDescription.of(task) for task in tasks}, scores, tuple(notes))


def probe(model: TextEncoder, tasks: Sequence[ProbingTask]) -> dict[str, ProbeScore]:
    """Score a model on tasks, by their titles; every distinct sentence is embedded once.

    Raises:
        EvaluationError: embeddings are not finite.
    """
    texts = list(dict.fromkeys(text for task in tasks for split in task.splits for text in split.texts))
    embeddings = np.asarray(model.encode(texts, batch_size=_BATCH, show_progress_bar=False), np.float32)
    if not np.isfinite(embeddings).all():
        raise EvaluationError("embeddings are not finite; the model cannot be probed")
    rows = {text: row for row, text in enumerate(texts)}
    found = {}
    for task in tasks:
        features = [embeddings[[rows[text] for text in split.texts]] for split in task.splits]
        found[task.title] = score_task(task, *features)
        logger.info(f"  {task.title}: {100 * found[task.title].accuracy:.1f}")
    return found


def score_task(task: ProbingTask, train: _Matrix, valid: _Matrix, test: _Matrix) -> ProbeScore:
    """Fit on one split, choose the regularisation on the second, score on the third.

    Args:
        task: gives the labels.
        train: (n, d) embeddings; standardized by their own means and deviations, as are the others.
        valid: (m, d).
        test: (k, d).
    """
    matrices = zip((train, valid, test), task.splits, strict=True)
    learnt, chosen_on, scored = (Examples(matrix, np.array(split.labels)) for matrix, split in matrices)
    classifier = best_classifier(learnt, chosen_on, STRENGTHS)
    return ProbeScore.of(classifier.right(scored), len(scored.labels), classifier.strength)


def majority_score(task: ProbingTask) -> ProbeScore:
    """What always answering the most frequent label of the training split scores, the first of equally frequent."""
    counts = Counter(task.train.labels)
    label = min(counts, key=lambda each: (-counts[each], each))
    return ProbeScore.of(task.test.labels.count(label), len(task.test.labels))
