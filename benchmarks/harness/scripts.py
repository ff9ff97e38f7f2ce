"""What several scripts have in common: refusal without data, tables, records."""

from __future__ import annotations

import argparse
from pathlib import Path

from st_paragram.errors import SettingsError
from st_paragram.tools.evaluation.benchmarks import report
from st_paragram.tools.evaluation.record import new_record, write_records
from st_paragram.tools.evaluation.results import BenchmarkRun


def data_or_hub(arguments: argparse.Namespace) -> None:
    """Refuse a run without data.

    Raises:
        SettingsError: neither --data nor --hub was given.
    """
    if arguments.data is None and not arguments.hub:
        raise SettingsError("no data: give --data FOLDER, --hub, or both")


def finish(run: BenchmarkRun, record: Path | None) -> int:
    """Print the tables of a run, write its record if a file is named, and return the exit status."""
    for part in report(run):
        print(part)
    if record:
        write_run(run, record)
    return 0


def write_run(run: BenchmarkRun, path: Path) -> None:
    """Write the record of a run: its results, the command line, the machine and how the models were trained."""
    write_records([new_record(run)], path)
