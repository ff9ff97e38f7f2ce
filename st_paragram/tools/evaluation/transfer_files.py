"""The sentences and labels of SentEval's transfer tasks (Conneau and Kiela 2018): files `label TAB text`.

A text may be empty, as one of CR is.
MR.tsv, CR.tsv, SUBJ.tsv and MPQA.tsv; TREC.train.tsv and .test.tsv; SST2.train.tsv, .dev.tsv and .test.tsv; each plain
or compressed as .tsv.xz, .tsv.gz or .tsv.bz2.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation.retrieval_files import cells_of, part

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


def transfer_folder(data: str | Path) -> Path:
    """Where a folder of evaluation data keeps the tasks: its folder `transfer`, or itself."""
    inner = Path(data) / "transfer"
    return inner if inner.is_dir() else Path(data)


def transfer_tasks(folder: str | Path) -> list[str]:
    """The tasks of which a folder has every file."""
    return [task for task, splits in TASKS.items() if all(part(Path(folder), _stem(task, split)) for split in splits)]


def read_transfer(data: str | Path) -> list[TransferTask]:
    """Read the tasks of a folder of evaluation data, see `transfer_folder`.

    Raises:
        EvaluationError: there are none.
        TextError: a file cannot be read, or a row is of another form (with its number); or a file has one label alone,
            or fewer than 10 sentences of one where some are to be held out.
    """
    folder = transfer_folder(data)
    if not (names := transfer_tasks(folder)):
        raise EvaluationError(f"{folder}: no transfer tasks; files are named like MR.tsv and SST2.train.tsv")
    return [TransferTask(name, {split: _read(folder, name, split) for split in TASKS[name]}) for name in names]


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
