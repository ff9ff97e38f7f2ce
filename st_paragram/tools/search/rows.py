"""Sentences and their fields, such as a language or a year, from texts, tables and tags like
`source=wiki`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from st_paragram.core.files import STDIN
from st_paragram.core.text.streams import read_lines, stream_name
from st_paragram.core.text.tables import CSV, TABBED, read_columns, table_form
from st_paragram.errors import SettingsError, TextError, short

Fields = Mapping[str, Any]
#: A file with one sentence per line (a path, or `-`), sentences, or sentences with their fields.
Source = str | Path | Iterable[str] | Iterable[tuple[str, Fields]]


def rows_of(
    source: Source, metadata: Fields | Iterable[Fields] | None
) -> Iterator[tuple[str, Fields]]:
    """Yield sentences with single spaces and their fields; `metadata` has fields for all sentences,
    or for each.
    """
    if isinstance(source, str) and source != STDIN and not _exists(source):
        raise TextError(
            f"{short(source)}: no such file; give the name of a text, or sentences as a list"
        )
    texts: Iterator[Any] = (
        read_lines(str(source)) if isinstance(source, (str, Path)) else iter(source)
    )
    each = None if metadata is None or isinstance(metadata, Mapping) else iter(metadata)
    for number, row in enumerate(texts, 1):
        text, fields = (
            row
            if isinstance(row, tuple)
            else (row, (metadata or {}) if each is None else next(each, None))
        )
        if not isinstance(text, str) or not isinstance(fields, Mapping):
            raise SettingsError(
                f"sentence {number} is {short(text)} with fields {short(fields)}; give text and a"
                " dict"
            )
        if not _is_unicode(text):
            raise SettingsError(
                f"sentence {number} is {short(text)}, which is not Unicode text; correct it"
            )
        values = {str(name): _kept(value) for name, value in fields.items()}
        for name, value in values.items():
            if isinstance(value, float) and math.isinf(value):
                advice = "give a number, or None for no value"
                raise SettingsError(
                    f"sentence {number}: field {short(name)} is infinite or too large; {advice}"
                )
        yield (
            " ".join(text.split()),
            {name: value for name, value in values.items() if value is not None},
        )
    if each is not None and next(each, None) is not None:
        raise SettingsError("there are more dicts of fields than sentences; give one per sentence")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # a sentence may be no name of a file
        return False


def table_rows(
    path: str, column: str, fields: Sequence[str], tags: Fields
) -> Iterator[tuple[str, Fields]]:
    """Yield sentences from a column of a table, with fields from other columns and `tags`; see
    `read_columns`.

    In CSV and TSV, all values are text, so columns with only numbers, or only true and false, are
    converted. For this, such tables are read into memory.
    """
    rows: Iterable[tuple[Any, ...]] = read_columns(path, [column], others=fields)
    if fields and table_form(path) in (CSV, TABBED) and (rows := list(rows)):
        texts, *columns = zip(*rows, strict=True)
        rows = zip(texts, *map(_read, columns), strict=True)
    missing = set(fields)
    for text, *values in rows:
        given = dict(zip(fields, values, strict=True))
        missing -= {name for name in missing if given[name] is not None}
        yield text, {**tags, **given}
    if missing:
        raise TextError(
            f"{stream_name(path)}: no row has a value in column {min(missing)!r}; correct the name"
        )


def tags_of(words: Iterable[str]) -> dict[str, Any]:
    """Parse fields like `source=wiki`; numbers, true and false are converted."""
    tags = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name or not value:
            raise SettingsError(f"tag {short(word)}: write FIELD=VALUE, such as source=wiki")
        tags[name] = _read([value])[0]
    return tags


def _read(values: Sequence[str]) -> Sequence[Any]:
    """Convert values as in JSON if all are numbers, or all true or false (`007` stays text)."""
    try:
        read = [value and json.loads(value, parse_int=_number) for value in values]
    except ValueError:
        return values
    kinds = {type(value) for value in read if value != ""}
    return read if kinds <= {bool} or kinds <= {int, float} else values


def _number(digits: str) -> int | str:
    return int(digits) if len(digits) < 19 else digits  # 64 bits


def _kept(value: Any) -> Any:
    """Convert a value for storage: dates become sortable text; empty text and NaN become None."""
    value = value.item() if isinstance(value, np.generic) else value
    value = float(value) if isinstance(value, Decimal) else value
    value = value.isoformat() if isinstance(value, date) else value
    return None if value == "" or value != value else value
