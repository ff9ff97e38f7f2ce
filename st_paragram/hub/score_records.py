"""Scores of a model out of the records that `st-paragram evaluate --json` writes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from st_paragram.core.damage import printable
from st_paragram.errors import EvaluationError
from st_paragram.hub.score_entries import TestResult
from st_paragram.tools.evaluation.record import Record, read_records

logger = logging.getLogger(__name__)


def scores_of(model: str | Path, files: Sequence[str | Path]) -> list[TestResult]:
    """What a model scored, of every benchmark that a model card has a place for.

    Args:
        model: its directory, name or hub id; records know it by any path that ends with the same name.
        files: of records, each with one benchmark or several.

    Raises:
        EvaluationError: a file is no record, or does not have this model.
    """
    return [result for file in files for record in read_records(file) if (result := _result(record, model, file))]


def _result(record: Record[Any], model: str | Path, file: str | Path) -> TestResult | None:
    wanted = _last_part(str(model))
    found = [result for name, result in record.run.models.items() if _last_part(name) == wanted]
    if len(found) != 1:
        known = printable(", ".join(record.run.models), 200)
        which = f"{len(found)} of them" if found else "none of them"
        seen = f"scores of {known}, {which} of a model called {wanted}"
        raise EvaluationError(f"{file}: {seen}; make the record with `st-paragram evaluate {model} --json`")
    if isinstance(found[0], get_args(TestResult)):
        result: TestResult = found[0]
        return result
    logger.warning(f"{file}: a model card has no place for scores of {record.benchmark}; they are left out")
    return None


def _last_part(name: str) -> str:
    return Path(name.partition("@")[0]).resolve().name
