"""What a benchmark found, as a JSON file that reports collect."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from st_paragram.errors import EvaluationError
from st_paragram.files import write_json
from st_paragram.machine import describe_machine


@dataclass(frozen=True)
class Record:
    """The results of one benchmark for one or several models.

    Args:
        benchmark: "sts", "hard-sts", "tatoeba", "bucc", "mteb" or "ablations".
        command: that made it.
        date: ISO.
        machine: `MachineDescription` as a mapping.
        data: what was scored, and what was missing.
        results: model -> results, in the benchmark's own form; correlations, errors and F1 are shares (0 .. 1).
        training: model -> `TrainingRecord` as a mapping, for models that have them.
    """

    benchmark: str
    command: str
    date: str
    machine: dict[str, Any]
    data: dict[str, Any]
    results: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)


def new_record(benchmark: str, models: Sequence[str], data: dict[str, Any], results: dict[str, Any]) -> Record:
    """A record of this run: the command line, today, this machine, and how the models were trained."""
    from st_paragram.models.training_record import read_training_record

    facts = {name: read_training_record(name) for name in models}
    return Record(
        benchmark,
        shlex.join(["python", *sys.argv]),
        datetime.date.today().isoformat(),
        asdict(describe_machine()),
        data,
        results,
        {name: asdict(value) for name, value in facts.items() if value},
    )


def write_record(record: Record, path: str | Path) -> None:
    """Write the file, whole or not at all; its folder is made.

    Numbers that are not finite (a correlation of constant scores) are written as null.
    """
    write_json(Path(path), _finite(asdict(record)))


def read_record(path: str | Path) -> Record:
    """Read back what `write_record` wrote.

    Raises:
        EvaluationError: the file is missing or no record.
    """
    try:
        return Record(**json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise EvaluationError(f"{path}: not a benchmark's record ({error}); make it with --json") from error


def _finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        return value
    return None if isinstance(value, float) else value
