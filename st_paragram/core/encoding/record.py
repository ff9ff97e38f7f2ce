"""The record of a training run: `training.json` of a model directory, for reports, and the source of the model card."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from st_paragram.core.encoding.configuration import TRAINING_FILE
from st_paragram.core.files import read_record
from st_paragram.errors import ModelDirectoryError, refused


@dataclass(frozen=True)
class Correlation:
    """Correlation of cosines with grades, in -1 .. 1; both are NaN where the scores were all alike."""

    pearson: float
    spearman: float

    @property
    def defined(self) -> bool:
        """Whether there is a correlation at all."""
        return math.isfinite(self.pearson) and math.isfinite(self.spearman)


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
class TrainingRecord:
    """Description of a training run.

    Args:
        name: of the model.
        languages: of the two sides.
        data: one line that says where the pairs come from.
        pairs: their number.
        preparation: its settings and reports.
        segmentation: word segmentation before the tokenizer (Chinese).
        settings: of the training run.
        seconds: of wall time, with evaluation and checkpoints.
        pairs_per_second: while training.
        scores: on development pairs.
        machine: the kind, and the number of threads.
        translations: scores on held-out translations, if there were any.
        history: what was logged of the run, where its objective has several parts.
        tasks: pairs of other tasks than translation, by task and language ("qa en").
    """

    name: str
    languages: tuple[str, str]
    data: str
    pairs: int
    preparation: Mapping[str, Any]
    segmentation: str
    settings: Mapping[str, Any]
    seconds: float
    pairs_per_second: float
    scores: Sequence[Score]
    machine: str = "unknown"
    translations: Sequence[TranslationScore] = ()
    history: Sequence[Mapping[str, float]] = field(default_factory=list)
    tasks: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> str:
        """The text of `training.json`."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def read_training_record(directory: str | Path) -> TrainingRecord | None:
    """The record kept in a model directory, or None if it has none.

    Raises:
        ModelDirectoryError: the file is there but broken.
    """
    path = Path(directory) / TRAINING_FILE
    if not path.is_file():
        return None
    with refused(ModelDirectoryError, path, "not the record of a training run", "remove it or train again"):
        return read_record(path, TrainingRecord)


def training_text(directory: str | Path) -> str | None:
    """The record kept in a model directory, as text to keep in a copy; None if it has none.

    Raises:
        ModelDirectoryError: the file is there but broken.
    """
    record = read_training_record(directory)
    return None if record is None else record.as_json()
