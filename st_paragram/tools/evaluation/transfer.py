"""English transfer tasks (SentEval, Conneau and Kiela 2018): a linear classifier on frozen
embeddings.

The classifier is logistic regression on standardized embeddings. MR, CR, SUBJ and MPQA are
cross-validated: each of ten folds is scored by a classifier trained on the other nine, with a
regularization chosen by training on eight of them and scoring the ninth. TREC chooses it on a tenth
of its training sentences, then trains on all. SST2 has a development set. SentEval uses an inner
cross-validation with nine folds instead, on embeddings that are not standardized.

Files have rows `label TAB text`: MR.tsv, CR.tsv, SUBJ.tsv and MPQA.tsv; TREC.train.tsv and
.test.tsv; SST2.train.tsv, .dev.tsv and .test.tsv, plain or compressed. A text may be empty, as in
one row of CR.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.errors import TextError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import inner_folder, packed, read_cells
from st_paragram.tools.evaluation.scores import Score, embed

#: Task -> its files ("": the only file, cross-validated), and the number of scored sentences in the
#: published task.
TASKS = {
    "MR": (("",), 10_662),
    "CR": (("",), 3_775),
    "SUBJ": (("",), 10_000),
    "MPQA": (("",), 10_606),
    "TREC": (("train", "test"), 500),
    "SST2": (("train", "dev", "test"), 1_821),
}
FOLDS = 10  # of cross-validation; TREC holds out one of them
#: Values of C to try. SentEval's values, 2^-2 ... 2^3, are for embeddings that are not
#: standardized.
STRENGTHS = [2.0**power for power in range(-12, 0, 2)]
MAJORITY = "The row *majority* is the accuracy of always choosing the most frequent label."

Texts = tuple[list[str], list[str]]  # sentences and their labels
Examples = tuple[NDArray[np.float32], NDArray[np.str_]]  # embeddings (n, D) and labels (n,)
Tasks = dict[str, dict[str, Texts]]  # task -> split -> sentences and labels


def find(data: Path, name: str) -> dict[str, dict[str, Path]]:
    """Return task -> split -> file, for the tasks with all files in a folder (its subfolder
    `transfer`, or itself).
    """
    folder = inner_folder(data, "transfer")
    files = {
        task: {
            split or "train": packed(folder / f"{task}{split and '.'}{split}.tsv")
            for split in splits
        }
        for task, (splits, _) in TASKS.items()
    }
    return {
        task: {s: p for s, p in paths.items() if p}
        for task, paths in files.items()
        if all(paths.values())
    }


def read(request: Request) -> Tasks:
    """Read the tasks in a folder."""
    tasks = request.choose(
        find(request.data or Path(), ""), "files are named like MR.tsv and TREC.train.tsv"
    )
    return {
        task: {split: _read(path, task, split) for split, path in files.items()}
        for task, files in tasks.items()
    }


def _read(path: Path, task: str, split: str) -> Texts:
    labels, texts = [], []
    for number, (label, text) in read_cells(path, 2, 2):
        if not label.strip():
            raise TextError(f"{path}: row {number}: an empty label; write `label TAB text`")
        labels.append(label.strip())
        texts.append(text)
    counts = Counter(labels)
    least = FOLDS if "dev" not in TASKS[task][0] else 1
    if split == "train" and (len(counts) < 2 or min(counts.values()) < least):
        seen = ", ".join(f"{count} of label {label}" for label, count in sorted(counts.items()))
        raise TextError(
            f"{path}: {seen}; give two or more labels, each with {least} or more sentences"
        )
    return texts, labels


def reference(tasks: Tasks) -> Iterator[Score]:
    """Yield the accuracy of the most frequent training label; ties go to the label that is first in
    order.
    """
    for task, splits in tasks.items():
        scored, counts = _scored(splits), Counter(splits["train"][1])
        most = min(counts, key=lambda label: (-counts[label], label))
        yield Score(
            "majority", "transfer", task, "accuracy", scored.count(most) / len(scored), len(scored)
        )


def _scored(splits: Mapping[str, Texts]) -> list[str]:
    return splits.get("test", splits["train"])[1]


def score(name: str, model: TextEncoder, tasks: Tasks) -> Iterator[Score]:
    """Yield the accuracy of a model on each task."""
    for task, splits in tasks.items():
        examples = {
            split: (embed(model, texts), np.array(labels))
            for split, (texts, labels) in splits.items()
        }
        yield Score(name, "transfer", task, "accuracy", accuracy(examples), len(_scored(splits)))


def tables(scores: list[Score], tasks: Tasks) -> Iterator[str]:
    """Yield one table, and a note on altered data."""
    altered = [task for task, splits in tasks.items() if len(_scored(splits)) != TASKS[task][1]]
    title = "Transfer: accuracy x 100 of a logistic regression on frozen embeddings"
    yield from report.section(title, scores, MAJORITY, known="" if altered else "transfer")
    if altered:
        yield report.not_comparable(altered)


def accuracy(splits: Mapping[str, Examples]) -> float:
    """Choose the regularization, train and score; with only `train`, by cross-validation."""
    StratifiedKFold = require("sklearn.model_selection", "probing", "transfer").StratifiedKFold
    vectors, labels = splits["train"]
    if "dev" in splits:
        both, gold = (
            np.concatenate(sides) for sides in zip(splits["train"], splits["dev"], strict=True)
        )
        classifier = best_classifier(both, gold, np.arange(len(gold)) >= len(labels), refit=False)
        return float(classifier.score(*splits["test"]))
    fold = np.empty(len(labels), np.int64)
    for number, (_, rows) in enumerate(
        StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(vectors, labels)
    ):
        fold[rows] = number
    if "test" in splits:
        return float(best_classifier(vectors, labels, fold == 0).score(*splits["test"]))
    right = 0
    for number in range(FOLDS):
        test, rest = fold == number, fold != number
        classifier = best_classifier(
            vectors[rest], labels[rest], fold[rest] == (number + 1) % FOLDS
        )
        right += int((classifier.predict(vectors[test]) == labels[test]).sum())
    return right / len(labels)


def best_classifier(
    vectors: NDArray[np.float32],
    labels: NDArray[np.str_],
    held_out: NDArray[np.bool_],
    refit: bool = True,
) -> Any:
    """Train a logistic regression on standardized features, with the C that is best on the held-out
    rows.

    It is trained on all rows or, without `refit`, on the rows that are not held out.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    split = [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]
    search = GridSearchCV(pipeline, {"logisticregression__C": STRENGTHS}, refit=False, cv=split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence: the last steps change almost nothing
        best = pipeline.set_params(**search.fit(vectors, labels).best_params_)
        return (
            best.fit(vectors, labels) if refit else best.fit(vectors[~held_out], labels[~held_out])
        )
