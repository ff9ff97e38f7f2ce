"""The record of a training run: `training.json` of a model directory, the source of its card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from st_paragram.core.files import read_record
from st_paragram.core.model_directory.configuration import TRAINING_FILE
from st_paragram.errors import ModelDirectoryError, refused


@dataclass(frozen=True)
class Correlation:
    """Correlation of cosines with grades, in -1 .. 1; both are NaN if all scores are equal."""

    pearson: float
    spearman: float


@dataclass(frozen=True)
class Score:
    """A correlation on a set of graded pairs."""

    data: str
    pairs: int
    model: str
    correlation: Correlation


@dataclass(frozen=True)
class TranslationScore:
    """The share of translations found by nearest neighbor, mean of both directions, 0 .. 1."""

    data: str
    pairs: int
    model: str
    accuracy: float


@dataclass(frozen=True)
class TaskScore:
    """The share of held-out rows of a task that a model gets right, 0 .. 1."""

    task: str  # with the language, such as "qa en"
    rows: int
    model: str
    accuracy: float


@dataclass(frozen=True)
class TrainingRecord:
    """Description of a training run."""

    name: str
    languages: tuple[str, str]  # of the two sides
    data: str  # origin of the pairs, in one line
    pairs: int
    preparation: Mapping[str, Any]  # settings and reports
    segmentation: str  # word segmentation before the tokenizer (Chinese)
    settings: Mapping[str, Any]
    seconds: float  # wall time, including evaluation and checkpoints
    pairs_per_second: float  # while training
    scores: Sequence[Score]  # on development pairs
    machine: str = "unknown"  # processor type and number of threads
    translations: Sequence[TranslationScore] = ()  # on held-out translations, if any
    # log, if the objective has several parts
    history: Sequence[Mapping[str, float]] = field(default_factory=list)
    # task, such as "qa en", -> pairs; without translation
    tasks: Mapping[str, int] = field(default_factory=dict)
    # on held-out rows of tasks, if any
    task_scores: Sequence[TaskScore] = field(default_factory=list)
    # why the trained weights were discarded; then the scores are those of the initial weights
    discarded: str = ""

    def as_json(self) -> str:
        """Return the text of `training.json`."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def read_training_record(directory: str | Path) -> TrainingRecord | None:
    """Read the record in a model directory; None if there is none."""
    path = Path(directory) / TRAINING_FILE
    if not path.is_file():
        return None
    problem = "not the record of a training run"
    with refused(ModelDirectoryError, path, problem, "remove it or train again"):
        return read_record(path, TrainingRecord)


def training_text(directory: str | Path) -> str | None:
    """Read the record as text, for a copy of the model."""
    record = read_training_record(directory)
    return None if record is None else record.as_json()
