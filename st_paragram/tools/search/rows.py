"""Sentences and their fields, from texts, tables and tags like `source=wiki`."""

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
    """Yield sentences with single spaces and their fields.

    `metadata` has fields for all sentences, or for each.
    """
    if isinstance(source, str) and source != STDIN and not _exists(source):
        raise TextError(
            f"{short(source)}: no such file; give the name of a text, or sentences as a list"
        )
    texts: Any = read_lines(str(source)) if isinstance(source, (str, Path)) else source
    shared: Fields = metadata if isinstance(metadata, Mapping) else {}
    fields_of_texts: Iterator[Any] | None = None
    if metadata is not None and metadata is not shared:
        fields_of_texts = iter(metadata)
    for number, row in enumerate(texts, 1):
        text = row
        fields: Any = shared
        if isinstance(row, tuple):
            text, fields = row
        elif fields_of_texts is not None:
            fields = next(fields_of_texts, None)
        if not isinstance(text, str) or not isinstance(fields, Mapping):
            raise SettingsError(
                f"sentence {number} is {short(text)} with fields {short(fields)}; give text and a"
                " dict"
            )
        if not _is_unicode(text):
            raise SettingsError(
                f"sentence {number} is {short(text)}, which is not Unicode text; correct it"
            )
        values = {}
        for name, value in fields.items():
            stored = _stored(value)
            if isinstance(stored, float) and math.isinf(stored):
                raise SettingsError(
                    f"sentence {number}: field {short(str(name))} is infinite or too large; give a"
                    " number, or None for no value"
                )
            if stored is not None:
                values[str(name)] = stored
        yield " ".join(text.split()), values
    if fields_of_texts is not None and next(fields_of_texts, None) is not None:
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
    """Yield sentences from a column of a table, with fields from other columns and `tags`.

    In CSV and TSV, all values are text, so columns with only numbers, or only true and false, are
    converted. For this, such tables are read into memory.
    """
    rows: Iterable[tuple[Any, ...]] = read_columns(path, [column], others=fields)
    if fields and table_form(path) in (CSV, TABBED):
        table = list(rows)
        if table:
            texts, *columns = zip(*table, strict=True)
            table = list(zip(texts, *[_converted(values) for values in columns], strict=True))
        rows = table
    missing = set(fields)
    for text, *values in rows:
        given = dict(zip(fields, values, strict=True))
        for name in fields:
            if given[name] is not None:
                missing.discard(name)
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
        tags[name] = _converted([value])[0]
    return tags


def _converted(values: Sequence[str]) -> Sequence[Any]:
    """Convert values as in JSON if all are numbers, or all true or false (`007` stays text)."""
    try:
        parsed = [value and json.loads(value, parse_int=_number) for value in values]
    except ValueError:
        return values
    kinds = {type(value) for value in parsed if value != ""}
    return parsed if kinds <= {bool} or kinds <= {int, float} else values


def _number(digits: str) -> int | str:
    return int(digits) if len(digits) < 19 else digits  # 64 bits


def _stored(value: Any) -> Any:
    """Convert a value for storage: dates become sortable text; empty text and NaN become None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, date):
        value = value.isoformat()
    return None if value == "" or value != value else value
