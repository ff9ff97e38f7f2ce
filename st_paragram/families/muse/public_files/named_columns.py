"""Rows of files with named columns: TSV and CSV with a header, and JSON lines; plain, gzip or xz."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from st_paragram.core.files import folder_for_file
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import TextError, one_line

_PACKED = (".gz", ".xz", ".bz2")

#: Our names of columns, and the names that files give them, in lower case.
Columns = Mapping[str, Sequence[str]]


def form_of(path: Path) -> str:
    """The ending of a file's name without that of its compression: "tsv"."""
    name = path.name.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return name.rpartition(".")[2]


def named_rows(path: Path, columns: Columns, needed: Sequence[str]) -> Iterator[dict[str, str] | None]:
    """Yield the texts of each row by our names of columns; None for a row that cannot be read.

    Args:
        path: a file `.tsv`, `.csv` or `.jsonl`, which may be packed.
        columns: our names, and those of files.
        needed: those of ours that a row must have.

    Raises:
        TextError: the file is not readable, of none of these kinds, or its header lacks a column.
    """
    if wrong := folder_for_file(path):
        raise TextError(f"{wrong}; name a file")
    form = form_of(path)
    if form not in ("tsv", "csv", "jsonl"):
        raise TextError(f"{path}: neither .tsv, .csv nor .jsonl; give a file of one of these kinds")
    rows = _json_rows(path, columns) if form == "jsonl" else _table_rows(path, columns, needed, form)
    for row in rows:
        yield row if row is not None and all(name in row for name in needed) else None


def _table_rows(path: Path, columns: Columns, needed: Sequence[str], form: str) -> Iterator[dict[str, str] | None]:
    lines = (f"{line}\n" for line in read_lines(str(path)))
    cells = csv.reader(lines) if form == "csv" else (line.rstrip("\n").split("\t") for line in lines)
    try:
        header = [cell.strip().lower() for cell in next(cells, [])]
        places = {ours: header.index(name) for ours, names in columns.items() for name in names[::-1] if name in header}
        if lacking := [name for name in needed if name not in places]:
            names = " or ".join(columns[lacking[0]])
            seen = f"no column {names} in its first row ({one_line(', '.join(header), 120)})"
            raise TextError(f"{path}: {seen}; put the names of the columns there")
        for row in cells:
            yield {ours: row[at] for ours, at in places.items()} if len(row) == len(header) else None
    except csv.Error as error:
        raise TextError(f"{path}: not readable as CSV ({one_line(error)}); is a quotation mark open?") from error


def _json_rows(path: Path, columns: Columns) -> Iterator[dict[str, str] | None]:
    for value in json_lines(path):
        if not isinstance(value, dict):
            yield None
            continue
        lower = {str(name).lower(): cell for name, cell in value.items()}
        found = {ours: lower[name] for ours, names in columns.items() for name in names[::-1] if name in lower}
        yield {name: str(cell) for name, cell in found.items() if isinstance(cell, (str, int))}


def json_lines(path: Path) -> Iterator[object]:
    """The value of each line of a file; None for a line that is not JSON; blank lines are skipped.

    Raises:
        TextError: the file is not readable or not UTF-8.
    """
    for line in read_lines(str(path)):
        if line.strip():
            try:
                yield json.loads(line.encode("utf-8"))
            except (ValueError, json.JSONDecodeError):
                yield None
