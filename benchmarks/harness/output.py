"""Tables that are printed during the measurement, and results with a description of the machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.machine import describe_machine
from harness.processes import spread
from st_paragram.core.files import write_json
from st_paragram.core.formatting import markdown_table
from st_paragram.core.outputs import check_new
from st_paragram.errors import ParagramError


def print_growing(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table row by row, as the rows are measured."""
    for number, row in enumerate(rows):
        table = markdown_table(head, [row])
        print(table if number == 0 else table.split("\n")[-1], flush=True)


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Format the median and range of each figure of each program."""
    head = list(next(iter(results.values()))[0])
    rows = [
        [name, *(spread([each[key] for each in rounds]) for key in head)]
        for name, rounds in results.items()
    ]
    return markdown_table(["", *head], rows)


def new_file(name: str) -> Path:
    """Read the name of an output file from the command line; refuse a file that exists."""
    try:
        check_new(Path(name))
    except ParagramError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(name)


def write_result(path: Path | None, **values: Any) -> None:
    """Write JSON values as one object, with a description of this machine, if there is a path."""
    if path is not None:
        write_json(path, {"machine": asdict(describe_machine()), **values})
