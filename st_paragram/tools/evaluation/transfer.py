"""English transfer tasks: a linear classifier on frozen embeddings.

SentEval (Conneau and Kiela, LREC 2018). The classifier is logistic regression on standardized
embeddings. MR, CR, SUBJ and MPQA are cross-validated: each of ten folds is scored by a classifier
trained on the other nine, with a regularization chosen by training on eight of them and scoring the
ninth. TREC chooses it on a tenth of its training sentences, then trains on all. SST2 has a
development set. SentEval uses an inner cross-validation with nine folds instead, on embeddings that
are not standardized.

Files have rows `label TAB text`: MR.tsv, CR.tsv, SUBJ.tsv and MPQA.tsv; TREC.train.tsv and
.test.tsv; SST2.train.tsv, .dev.tsv and .test.tsv, plain or compressed. A text may be empty, as in
one row of CR.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.errors import TextError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.files import inner_folder, packed, read_cells
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.neighbors.results import Vectors

FOLDS = 10  # of cross-validation; TREC holds out one of them
#: Values of C to try. SentEval's values, 2^-2 ... 2^3, are for embeddings that are not
#: standardized.
STRENGTHS = [2.0**power for power in range(-12, 0, 2)]

Labels = NDArray[np.str_]


#: Task -> number of scored sentences in the published task.
SCORED = {"MR": 10_662, "CR": 3_775, "SUBJ": 10_000, "MPQA": 10_606, "TREC": 500, "SST2": 1_821}
#: Parts of the tasks that are not cross-validated. The others are one file, as a `train` part.
PARTS = {"TREC": ("train", "test"), "SST2": ("train", "dev", "test")}


@dataclass(frozen=True)
class Sentences:
    """Sentences and their labels."""

    texts: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Task:
    """The sentences of a task."""

    train: Sentences
    dev: Sentences | None = None
    test: Sentences | None = None

    @property
    def scored(self) -> Sentences:
        """The sentences that are scored: all, if the task is cross-validated."""
        return self.test or self.train


@dataclass(frozen=True)
class Examples:
    """Embeddings, (n, D), and labels, (n,)."""

    vectors: Vectors
    labels: Labels


Tasks = dict[str, Task]  # by name


def find(data: Path, benchmark: str) -> dict[str, dict[str, Path | None]]:
    """Return task -> part -> file, for the tasks with all files in a folder.

    The files are in the subfolder `transfer` or in the data folder itself.
    """
    folder = inner_folder(data, "transfer")
    tasks = {}
    for name in SCORED:
        files = {"train": packed(folder / f"{name}.tsv")}
        if name in PARTS:
            files = {part: packed(folder / f"{name}.{part}.tsv") for part in PARTS[name]}
        if all(files.values()):
            tasks[name] = files
    return tasks


def read(request: Request) -> Tasks:
    """Read the tasks in a folder."""
    tasks = find(request.folder, "transfer")
    request.check_found(tasks, "files are named like MR.tsv and TREC.train.tsv")
    require("sklearn", "probing", "transfer")
    return {name: _read_task(files) for name, files in tasks.items()}


def _read_task(files: Mapping[str, Path | None]) -> Task:
    parts = {}
    for part, path in files.items():
        minimum = 0
        if part == "train":
            minimum = 1 if "dev" in files else FOLDS
        parts[part] = _read_sentences(path, minimum)
    return Task(**parts)


def _read_sentences(path: Path | None, minimum: int) -> Sentences:
    """Read a file; with a minimum, it must have two labels, each with so many sentences."""
    assert path is not None  # `find` checks it
    sentences = Sentences([], [])
    for number, (label, text) in read_cells(path, 2, 2):
        if not label.strip():
            raise TextError(f"{path}: row {number}: an empty label; write `label TAB text`")
        sentences.labels.append(label.strip())
        sentences.texts.append(text)
    counts = Counter(sentences.labels)
    if minimum and (len(counts) < 2 or min(counts.values()) < minimum):
        shown = ", ".join(f"{count:,} of label {label}" for label, count in sorted(counts.items()))
        raise TextError(
            f"{path}: {shown}; give two or more labels, each with {minimum} or more sentences"
        )
    return sentences


def reference(tasks: Tasks) -> Iterator[Score]:
    """Yield the accuracy of the most frequent training label.

    Of equally frequent labels, it is the first in alphabetical order.
    """
    for name, task in tasks.items():
        counts = Counter(sorted(task.train.labels))
        ((label, _),) = counts.most_common(1)
        labels = task.scored.labels
        yield _accuracy(report.MAJORITY, name, labels.count(label) / len(labels), len(labels))


def score(name: str, model: TextEncoder, tasks: Tasks) -> Iterator[Score]:
    """Yield the accuracy of a model on each task."""
    for task_name, task in tasks.items():
        train = _embed(model, task.train)
        if task.test is None:
            value = cross_validated_accuracy(train)
        else:
            dev = _embed(model, task.dev) if task.dev else None
            value = held_out_accuracy(train, dev, _embed(model, task.test))
        yield _accuracy(name, task_name, value, len(task.scored.labels))


def _embed(model: TextEncoder, sentences: Sentences) -> Examples:
    return Examples(embed(model, sentences.texts), np.array(sentences.labels))


def _accuracy(model: str, task: str, value: float, items: int) -> Score:
    return Score(model, "transfer", task, measure="accuracy", value=value, items=items)


def tables(scores: list[Score], tasks: Tasks) -> Iterator[str]:
    """Yield one table, and a note on altered data."""
    altered = []
    for name, task in tasks.items():
        if len(task.scored.labels) != SCORED[name]:
            altered.append(name)
    yield from report.section(
        "Transfer: accuracy x 100 of a logistic regression on frozen embeddings",
        scores,
        note=report.MAJORITY_NOTE,
        published_table="" if altered else "transfer",
    )
    if altered:
        yield report.not_comparable(altered)


def held_out_accuracy(train: Examples, dev: Examples | None, test: Examples) -> float:
    """Choose the regularization on `dev`, or on a tenth of `train`; train, and score `test`."""
    if dev is None:
        classifier = best_classifier(train, _folds(train) == 0)
    else:
        both = Examples(
            np.concatenate([train.vectors, dev.vectors]),
            np.concatenate([train.labels, dev.labels]),
        )
        is_dev = np.arange(len(both.labels)) >= len(train.labels)
        classifier = best_classifier(both, is_dev, refit=False)
    return float(classifier.score(test.vectors, test.labels))


def cross_validated_accuracy(examples: Examples) -> float:
    """Score each fold with a classifier of the others; the next fold chooses the regularization."""
    folds = _folds(examples)
    right = 0
    for fold in range(FOLDS):
        is_test = folds == fold
        is_next = folds == (fold + 1) % FOLDS
        rest = Examples(examples.vectors[~is_test], examples.labels[~is_test])
        classifier = best_classifier(rest, is_next[~is_test])
        predicted = classifier.predict(examples.vectors[is_test])
        right += int((predicted == examples.labels[is_test]).sum())
    return right / len(examples.labels)


def _folds(examples: Examples) -> NDArray[np.int64]:
    """Return the fold of each example, (n,)."""
    from sklearn.model_selection import StratifiedKFold

    folds = np.empty(len(examples.labels), np.int64)
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for number, (_, rows) in enumerate(splitter.split(examples.vectors, examples.labels)):
        folds[rows] = number
    return folds


def best_classifier(examples: Examples, held_out: NDArray[np.bool_], refit: bool = True) -> Any:
    """Train a logistic regression on standardized features, with the best C on held-out rows.

    It is trained on all rows or, without `refit`, on the rows that are not held out.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    search = GridSearchCV(
        pipeline,
        {"logisticregression__C": STRENGTHS},
        refit=False,
        cv=[(np.flatnonzero(~held_out), np.flatnonzero(held_out))],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence: the last steps change almost nothing
        search.fit(examples.vectors, examples.labels)
        pipeline.set_params(**search.best_params_)
        if refit:
            return pipeline.fit(examples.vectors, examples.labels)
        return pipeline.fit(examples.vectors[~held_out], examples.labels[~held_out])
