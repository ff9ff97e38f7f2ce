"""What ablations find: the types that the script, its kept results and the report share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from st_paragram.tools.evaluation.results import GradedResult


@dataclass(frozen=True)
class AblationRun:
    """One training run of a row.

    Args:
        seed: of the training run.
        scores: name of development pairs -> how the trained model does on them.
        pairs: trained on.
        seconds: of the training.
        pairs_per_second: while training.
        translations: name of held-out translations -> the share found by nearest neighbour, mean of both directions.
    """

    seed: int
    scores: dict[str, GradedResult]
    pairs: int | None = None
    seconds: float | None = None
    pairs_per_second: float | None = None
    translations: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AblationResult:
    """A row: what its change is about, the change, and a training run for each seed."""

    group: str
    overrides: dict[str, Any]
    runs: list[AblationRun]


@dataclass(frozen=True)
class AblationsRun:
    """Rows trained on the same text and scored on the same development pairs.

    Args:
        models: name of a row -> result.
        text: what was trained on.
        development: name of development pairs -> their number.
        base: settings of the base.
    """

    benchmark: ClassVar[str] = "ablations"
    models: dict[str, AblationResult]
    text: list[str] = field(default_factory=list)
    development: dict[str, int] = field(default_factory=dict)
    base: dict[str, Any] = field(default_factory=dict)
