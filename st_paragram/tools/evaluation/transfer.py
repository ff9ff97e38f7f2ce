"""English transfer tasks (SentEval, Conneau and Kiela 2018): a linear classifier on frozen embeddings.

Logistic regression on standardized embeddings. MR, CR, SUBJ and MPQA are cross-validated: each of ten folds is scored
by a classifier of the other nine, whose regularization was chosen by learning from eight and scoring the ninth. TREC
chooses it on a tenth of its training sentences, then learns from all of them; SST2 has a separate development set.
SentEval chooses by an inner cross-validation of nine folds, on embeddings that are not standardized.

Files are `label TAB text`: MR.tsv, CR.tsv, SUBJ.tsv and MPQA.tsv; TREC.train.tsv and .test.tsv; SST2.train.tsv,
.dev.tsv and .test.tsv; each plain or compressed. A text may be empty, as one of CR is.
"""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Found, Request
from st_paragram.tools.evaluation.files import inner_folder, packed, read_cells
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.scores import Score, embed

logger = logging.getLogger(__name__)

#: Task -> its splits, in the order in which the papers print tasks; "" is the only file of a task without any.
TASKS = {
    "MR": ("",),
    "CR": ("",),
    "SUBJ": ("",),
    "MPQA": ("",),
    "TREC": ("train", "test"),
    "SST2": ("train", "dev", "test"),
}
FOLDS = 10  # of cross-validation, and a tenth is held out
#: Values of C that are tried. SentEval's 2^-2 ... 2^3 are for embeddings that are not standardized.
STRENGTHS = [2.0**power for power in range(-12, 0, 2)]
#: Sentences that are scored, by which the published tasks are known.
SENTENCES = {"MR": 10_662, "CR": 3_775, "SUBJ": 10_000, "MPQA": 10_606, "TREC": 500, "SST2": 1_821}
MAJORITY = "The row *majority* is what the most frequent label alone would reach."

Texts = tuple[list[str], list[str]]  # sentences and their labels
Examples = tuple[NDArray[np.float32], NDArray[np.str_]]  # embeddings (n, D) and labels (n,)


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has all files of a task."""
    return bool(transfer_tasks(data))


def transfer_tasks(data: str | Path) -> dict[str, dict[str, Path]]:
    """Task -> split -> file, of the tasks of which a folder (its folder `transfer`, or itself) has every file."""
    folder = inner_folder(data, "transfer")
    files = {
        task: {split: packed(folder / f"{task}{split and '.'}{split}.tsv") for split in splits}
        for task, splits in TASKS.items()
    }
    return {task: {s: p for s, p in of.items() if p} for task, of in files.items() if all(of.values())}


def read_transfer(data: str | Path) -> dict[str, dict[str, Texts]]:
    """Task -> split -> sentences and labels."""
    tasks = transfer_tasks(data)
    if not tasks:
        raise EvaluationError(f"{data}: no transfer tasks; files are named like MR.tsv, TREC.train.tsv and .test.tsv")
    return {task: {split: _read(path, task, split) for split, path in files.items()} for task, files in tasks.items()}


def _read(path: Path, task: str, split: str) -> Texts:
    rows = [(number, label.strip(), text) for number, (label, text) in read_cells(path, 2, 2)]
    if empty := next((number for number, label, _ in rows if not label), None):
        raise TextError(f"{path}: row {empty}: an empty label; expected `label TAB text`")
    counts = Counter(label for _, label, _ in rows)
    least = FOLDS if split in ("", "train") and "dev" not in TASKS[task] else 1
    if split != "test" and (len(counts) < 2 or min(counts.values()) < least):
        seen = ", ".join(f"{count} of label {label}" for label, count in sorted(counts.items()))
        raise TextError(f"{path}: {seen}; two labels with {least} sentences or more each are needed")
    return [text for _, _, text in rows], [label for _, label, _ in rows]


def run(request: Request) -> Found:
    """Score models on the tasks of a folder."""
    tasks = read_transfer(request.folder)
    sizes = {task: len((splits.get("test") or splits[""])[1]) for task, splits in tasks.items()}
    found = {"majority": {task: majority(splits) for task, splits in tasks.items()}}
    found |= score_each(request.models, lambda model: _score(model, tasks), request.untrained)
    scores = [
        Score(model, "transfer", task, "accuracy", value, items=sizes[task])
        for model, values in found.items()
        for task, value in values.items()
    ]
    altered = [task for task in tasks if sizes[task] != SENTENCES[task]]
    title = "Transfer: accuracy x 100 of a logistic regression on frozen embeddings"
    parts = [*report.section(title, scores, known="" if altered else "transfer", note=MAJORITY)]
    return scores, iter([*parts, report.not_comparable(altered)] if altered else parts)


def _score(model: TextEncoder, tasks: Mapping[str, Mapping[str, Texts]]) -> dict[str, float]:
    found = {}
    for task, splits in tasks.items():
        examples = {split: (embed(model, texts), np.array(labels)) for split, (texts, labels) in splits.items()}
        if not all(np.isfinite(vectors).all() for vectors, _ in examples.values()):
            raise EvaluationError(f"{task}: embeddings are not finite; the model is broken")
        found[task] = accuracy(examples)
        logger.info(f"  {task}: {100 * found[task]:.1f}")
    return found


def majority(splits: Mapping[str, Texts]) -> float:
    """Share of the sentences scored that have the label most frequent in training, the first of equally frequent."""
    train = (splits.get("train") or splits[""])[1]
    test = splits["test"][1] if "test" in splits else train
    counts = Counter(train)
    return test.count(min(counts, key=lambda label: (-counts[label], label))) / len(test)


def accuracy(splits: Mapping[str, Examples]) -> float:
    """Learn, choose the regularization and score, from "" alone (cross-validation) or train, dev and test."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    if "" in splits:
        vectors, labels = splits[""]
        parts = [test for _, test in folds.split(vectors, labels)]
        right = 0
        for number, test in enumerate(parts):
            rest = np.sort(np.concatenate([part for part in parts if part is not test]))
            held_out = np.isin(rest, parts[(number + 1) % FOLDS])
            classifier = best_classifier(vectors[rest], labels[rest], held_out)
            right += int((classifier.predict(vectors[test]) == labels[test]).sum())
        return right / len(labels)
    (vectors, labels), test_examples = splits["train"], splits["test"]
    if "dev" in splits:
        both, gold = (np.concatenate(sides) for sides in zip(splits["train"], splits["dev"], strict=True))
        classifier = best_classifier(both, gold, np.arange(len(gold)) >= len(labels), refit=False)
    else:
        held_out = np.isin(np.arange(len(labels)), next(test for _, test in folds.split(vectors, labels)))
        classifier = best_classifier(vectors, labels, held_out)
    return float((classifier.predict(test_examples[0]) == test_examples[1]).mean())


def best_classifier(
    vectors: NDArray[np.float32],
    labels: NDArray[np.str_],
    held_out: NDArray[np.bool_],
    refit: bool = True,
    strengths: Sequence[float] = STRENGTHS,
) -> Any:  # noqa: ANN401 - scikit-learn's pipeline
    """A logistic regression on standardized features, with the C that is best on the rows held out.

    It has learned from all rows, or without `refit` from those that are not held out.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, PredefinedSplit
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    splits = PredefinedSplit(np.where(held_out, 0, -1))
    search = GridSearchCV(pipeline, {"logisticregression__C": list(strengths)}, cv=splits, refit=refit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last steps change next to nothing
        search.fit(vectors, labels)
        if refit:
            return search.best_estimator_
        best = pipeline.set_params(**search.cv_results_["params"][int(search.cv_results_["rank_test_score"].argmin())])
        return best.fit(vectors[~held_out], labels[~held_out])
