"""What scripts have in common: tables that grow while they are measured, records, results with the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from st_paragram.core.files import write_json
from st_paragram.core.machine import describe_machine
from st_paragram.core.tables import markdown_table
from st_paragram.tools.evaluation.record import new_record, write_records
from st_paragram.tools.evaluation.results import BenchmarkRun


def print_growing(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table row by row, as the rows are measured."""
    for number, row in enumerate(rows):
        table = markdown_table(head, [row])
        say(table if number == 0 else table.split("\n")[-1])


def say(text: str) -> None:
    """Print a text at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_run(run: BenchmarkRun, path: Path) -> None:
    """Write the record of a run: its results, the command line, the machine and how the models were trained."""
    write_records([new_record(run)], path)


def write_result(path: Path, **values: Any) -> None:  # noqa: ANN401
    """Write JSON values as one object, with a description of this machine."""
    write_json(path, {"machine": asdict(describe_machine()), **values})
