"""Parts of a run: each makes one table, which is kept on disk, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.results import Table
from st_paragram.core.files import write_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Unit:
    """A table to make: its key, and what makes it."""

    key: str
    make: Callable[[], Table]


def run_units(units: Iterable[Unit], folder: Path, settings: dict[str, Any], resume: bool) -> Iterator[Table]:
    """Make tables one by one, each kept under `folder` when it is made.

    Args:
        units: what to make.
        folder: of the kept tables.
        settings: tables of other settings are made again.
        resume: take a table that is kept there instead of making it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for unit in units:
        path = folder / f"{unit.key}.json"
        if resume and (kept := _kept(path, settings)) is not None:
            logger.info("%s: taken from an earlier run", unit.key)
            yield kept
            continue
        table = unit.make()
        write_json(path, {"settings": settings, "table": table.as_json()})
        yield table


def _kept(path: Path, settings: dict[str, Any]) -> Table | None:
    if not path.is_file():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    return Table.from_json(values["table"]) if values["settings"] == settings else None
