"""What mteb finds, as records keep it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class MtebScores:
    """What mteb says of one subset of a task: the task's main score, and everything by mteb's names."""

    main_score: float | None
    metrics: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class MtebResult:
    """A model on mteb's tasks: task -> subset -> scores.

    A split other than the task's own test set is named in the subset: `default (validation)`.
    """

    tasks: dict[str, dict[str, MtebScores]]


@dataclass(frozen=True)
class MtebRun:
    """Models on mteb's tasks, the revision of each task's data, and notes as in `StsRun`."""

    benchmark: ClassVar[str] = "mteb"
    models: dict[str, MtebResult]
    revisions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
