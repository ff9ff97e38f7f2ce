"""The columns of parallel texts that are tables, and texts that look like tables and of which no columns were named."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from st_paragram.core.text.lines import read_lines
from st_paragram.core.text.parallel import TextSource
from st_paragram.core.text.streams import is_zip
from st_paragram.core.text.table import TableForm, named
from st_paragram.core.text.tables import column_names, table_form
from st_paragram.errors import SettingsError, TextError

_ROWS_LOOKED_AT = 5


def with_columns(sources: Sequence[TextSource], columns: Sequence[Sequence[str]]) -> list[TextSource]:
    """Say which columns of texts hold the two languages.

    Args:
        sources: Texts of one file each.
        columns: Two names for all texts, or for each; see `tables.read_columns`. None at all: the texts are plain.

    Raises:
        SettingsError: They are not two names, or not as many as texts.
        TextError: No columns are named, and a text looks like a table.
    """
    if not columns:
        for source in sources:
            _check_plain(source)
        return list(sources)
    for names in columns:
        if len(names) != 2:
            raise SettingsError(f"columns {named(names)}: {len(names)}; give two, one per language")
    if len(columns) not in (1, len(sources)):
        seen = f"{len(columns)} --columns options for {len(sources)} text{'s' * (len(sources) != 1)}"
        raise SettingsError(f"{seen}; give one for all, or one for each")
    each = columns if len(columns) == len(sources) else [columns[0]] * len(sources)
    return [replace(source, columns=tuple(names)) for source, names in zip(sources, each, strict=True)]


def _check_plain(source: TextSource) -> None:
    path = source.paths[0]
    if len(source.paths) == 2 or not Path(path).is_file() or is_zip(path):
        return
    form = table_form(path)
    if form is not TableForm.PARQUET:
        lines: list[str] = []
        with suppress(TextError):  # said again when the text is read
            lines = list(islice(read_lines(path), _ROWS_LOOKED_AT))
        if not lines or lines[0].count("\t") == 1 + source.further_columns:
            return
        form = form if form is TableForm.CSV or form is TableForm.JSONL else _looks_like(lines)
    if form is not None:
        seen = f"is a table ({form.value}) with the columns {named(column_names(path))}"
        raise TextError(f"{path}: {seen}; name the two text columns with --columns NAME NAME")


def _looks_like(lines: Sequence[str]) -> TableForm | None:
    """What rows without the right number of tabs look like."""
    if _is_object(lines[0]):
        return TableForm.JSONL
    for delimiter in ",;":
        with suppress(csv.Error):
            widths = {len(row) for row in csv.reader(lines, delimiter=delimiter, strict=True)}
            if len(lines) > 1 and len(widths) == 1 and widths.pop() > 1 and "\t" not in lines[0]:
                return TableForm.CSV
    return None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line.encode()), dict)
    except ValueError:
        return False
