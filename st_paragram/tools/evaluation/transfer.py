"""English transfer tasks (SentEval, Conneau and Kiela 2018): a linear classifier on frozen embeddings.

Logistic regression on standardized embeddings. MR, CR, SUBJ and MPQA are cross-validated: each of ten folds is scored
by a classifier of the other nine, whose regularisation was chosen by learning from eight and scoring the ninth. TREC
chooses it on a tenth of its training sentences, then learns from all of them; SST2 has a separate development set.
SentEval chooses by an inner cross-validation of nine folds, on embeddings that are not standardized.

Files are `label TAB text`: MR.tsv, CR.tsv, SUBJ.tsv and MPQA.tsv; TREC.train.tsv and .test.tsv; SST2.train.tsv,
.dev.tsv and .test.tsv; each plain or compressed as .tsv.xz, .tsv.gz or .tsv.bz2. A text may be empty, as one of CR is.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.extras import require
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation.base import Request, inner_folder
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.linear_classifier import Examples, best_classifier, folds
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.published import Source, rows
from st_paragram.tools.evaluation.published_sets import not_comparable
from st_paragram.tools.evaluation.retrieval_files import cells_of, part

logger = logging.getLogger(__name__)

#: Task -> its splits, in the order in which the papers print tasks; "" stands for the only file of a task without any.
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
STRENGTHS = tuple(2.0**power for power in range(-12, 0, 2))
_SEED = 0  # of the folds

# Accuracy, SentEval's protocol.
PUBLISHED = rows(
    Source.MUSE,
    "MR CR SUBJ MPQA TREC SST2",
    """
    USE_CNN: 73.8 83.2 90.1 87.7 96.4 78.1
    USE_Trans: 78.1 87.0 92.1 89.9 96.6 80.9
    InferSent: 81.1 86.3 92.4 90.2 88.2 84.6
    Skip-Thought LN: 79.4 83.1 93.7 89.3 - -
    Quick-Thought: 82.4 86.0 94.8 90.2 92.4 87.6
    USE_DAN, English: 72.2 78.5 92.1 86.9 88.1 77.5
    """,
)

#: Sentences that are scored, by which the published tasks are known.
SENTENCES = {"MR": 10_662, "CR": 3_775, "SUBJ": 10_000, "MPQA": 10_606, "TREC": 500, "SST2": 1_821}

MAJORITY = "The row *majority* is what the most frequent label alone would reach."


@dataclass(frozen=True)
class LabelledTexts:
    """Sentences and as many labels."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class TransferTask:
    """A task: its name, and split ("train", "dev", "test"; "" of a task without splits) -> sentences and labels."""

    name: str
    splits: dict[str, LabelledTexts]


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


RUN = TransferRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has all files of a task."""
    return bool(transfer_tasks(inner_folder(data, "transfer")))


def transfer_tasks(folder: str | Path) -> list[str]:
    """The tasks of which a folder has every file."""
    return [task for task, splits in TASKS.items() if all(part(Path(folder), _stem(task, split)) for split in splits)]


def read_transfer(data: str | Path) -> list[TransferTask]:
    """Read the tasks of a folder of evaluation data; its folder `transfer` is taken if there is one.

    Raises:
        EvaluationError: there are none.
        TextError: a file cannot be read, or a row is of another form (with its number); or a file has one label alone,
            or fewer than 10 sentences of one where some are to be held out.
    """
    folder = inner_folder(data, "transfer")
    if not (names := transfer_tasks(folder)):
        raise EvaluationError(f"{folder}: no transfer tasks; files are named like MR.tsv and SST2.train.tsv")
    return [TransferTask(name, {split: _read(folder, name, split) for split in TASKS[name]}) for name in names]


def run(request: Request) -> TransferRun:
    """Score models on the tasks of a folder.

    Raises:
        EvaluationError: the folder has no tasks, or a model's embeddings are not finite.
        TextError: as `read_transfer`.
        MissingExtraError: scikit-learn is not installed.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    tasks = read_transfer(request.folder)
    require("sklearn", extra="probing", purpose="transfer")
    results = score_each(request.models, lambda model: _score(model, tasks), request.untrained)
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


def report(found: TransferRun) -> Iterator[str]:
    """One table of published rows, the majority and all models."""
    tasks = list(found.majority)
    first = next(iter(found.models.values())).tasks
    same = [task for task in tasks if first[task].sentences == SENTENCES.get(task)]
    figures: dict[str, list[float | None]] = {}
    for row in PUBLISHED if same else ():
        figures[row.label] = [row.scores.get(task) if task in same else None for task in tasks]
    figures["majority"] = list(found.majority.values())
    figures |= {name: [result.tasks[task].accuracy for task in tasks] for name, result in found.models.items()}
    cells = [[name, *map(hundredths, row), _mean(row)] for name, row in figures.items()]
    yield "## Transfer: accuracy x 100 of a logistic regression on frozen embeddings\n"
    yield f"{MAJORITY}\n"
    yield markdown_table(["model", *tasks, "mean"], cells)
    if altered := [task for task in tasks if task not in same]:
        yield f"\n{not_comparable(altered)}"
    known = {name: result.seconds for name, result in found.models.items() if result.seconds is not None}
    if known:
        yield f"\nThis took {', '.join(f'{seconds:.0f} s for {name}' for name, seconds in known.items())}."


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


def _score(model: TextEncoder, tasks: Sequence[TransferTask]) -> TransferResult:
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


def _stem(task: str, split: str) -> str:
    return f"{task}.{split}" if split else task


def _read(folder: Path, task: str, split: str) -> LabelledTexts:
    path = part(folder, _stem(task, split))
    assert path is not None
    rows = []
    for number, (label, text) in cells_of(path, 2, 2):
        if not label.strip():
            raise TextError(f"{path}: row {number}: an empty label; expected `label TAB text`")
        rows.append((label.strip(), text))
    counts = Counter(label for label, _ in rows)
    least = FOLDS if split in ("", "train") and "dev" not in TASKS[task] else 1
    if split != "test" and (len(counts) < 2 or min(counts.values()) < least):
        seen = ", ".join(f"{count} of label {label}" for label, count in sorted(counts.items()))
        raise TextError(f"{path}: {seen}; two labels with {least} sentences or more each are needed")
    return LabelledTexts(tuple(text for _, text in rows), tuple(label for label, _ in rows))


def _mean(figures: list[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    return hundredths(fmean(known)) if len(known) == len(figures) else MISSING
