"""Sentences that come with fields, from wherever they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from st_paragram.core.text.streams import read_lines, stream_name
from st_paragram.core.text.tables import CSV, JSON, TABBED, read_columns, table_form
from st_paragram.errors import SettingsError, TextError, short
from st_paragram.tools.search.fields import Value, check_name, guessed

Tags = Mapping[str, Value | None]
#: Fields for all sentences, or for each.
Metadata = Tags | Iterable[Tags]


@dataclass(frozen=True)
class TaggedTexts:
    """Sentences and their fields.

    Attributes:
        name: Of the text, for messages and for `index.json`.
        rows: Sentences with fields, which may be read once.
        guess: Values are text although they may be numbers, as in a CSV file: find out.
    """

    name: str
    rows: Iterable[tuple[str, Tags | None]]
    guess: bool = False


#: A file with a sentence on each line (a path, or `-`), or sentences themselves.
Source = str | Path | Iterable[str] | TaggedTexts


def tagged(source: Source, metadata: Metadata | None) -> TaggedTexts:
    """Sentences with their fields.

    Args:
        source: The sentences.
        metadata: Fields of all sentences, or for each sentence its own; None: there are none.

    Raises:
        SettingsError: A name of a field is refused, or there are not as many sentences as fields for them.
        TextError: While the rows are read, as of `read_lines`.
    """
    if isinstance(source, TaggedTexts):
        if metadata is not None:
            raise SettingsError("these sentences have fields already; give them once")
        return source
    if isinstance(source, (str, Path)):
        name, texts = stream_name(str(source)), read_lines(str(source))
    else:
        name, texts = "sentences", iter(source)
    if metadata is None or isinstance(metadata, Mapping):
        for key in metadata or {}:
            check_name(key)
        return TaggedTexts(name, ((text, metadata) for text in texts))
    return TaggedTexts(name, _paired(texts, metadata))


def _paired(texts: Iterator[str], metadata: Iterable[Tags]) -> Iterator[tuple[str, Tags]]:
    count, pairs = 0, zip(texts, metadata, strict=True)
    try:
        for text, tags in pairs:
            count += 1
            if not isinstance(tags, Mapping):
                raise SettingsError(f"fields of sentence {count} are {short(tags)}; give a mapping")
            yield text, tags
    except ValueError as error:
        seen = f"there are not as many sentences as fields for them: one of both ends after {count:,}"
        raise SettingsError(f"{seen}; give a mapping for each sentence") from error


def tagged_table(path: str, text: str, fields: Sequence[str], tags: Tags) -> TaggedTexts:
    """Sentences from a column of a table, and their fields from others.

    Args:
        path: CSV, TSV, JSON lines or Parquet, see `read_columns`.
        text: The column with the sentences.
        fields: Columns with fields; values of CSV and TSV are taken for numbers where all of a column are.
        tags: Fields of all sentences.

    Raises:
        TextError: While rows are read, as of `read_columns`.
        SettingsError: A name of a field is refused, or given twice.
    """
    for name in fields:
        check_name(name)
    if twice := {name for name in fields if [*fields, *tags].count(name) > 1}:
        raise SettingsError(f"field {min(twice)} is given twice; give it once")
    return TaggedTexts(stream_name(path), _rows(path, text, fields, tags), table_form(path) in (CSV, TABBED))


def _rows(path: str, text: str, fields: Sequence[str], tags: Tags) -> Iterator[tuple[str, dict[str, Value | None]]]:
    empty = set(fields)
    for sentence, *values in read_columns(path, [text], others=fields):
        given = {name: _value(value) for name, value in zip(fields, values, strict=True)}
        if empty:
            empty -= {name for name, value in given.items() if value is not None}
        yield sentence, {**tags, **given}
    if empty and table_form(path) == JSON:
        raise TextError(f"{stream_name(path)}: no row has a value in column {min(empty)!r}; correct the name")


def _value(value: object) -> Any:  # noqa: ANN401 - whatever a table holds; `Kind.of` refuses what cannot be kept
    """A value of a table; dates become text that can be ordered."""
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def constant_tags(words: Iterable[str]) -> dict[str, Value]:
    """Fields from words like `source=wiki`; numbers, true and false are read as such.

    Raises:
        SettingsError: A word is not of that form.
    """
    found: dict[str, Value] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not value:
            raise SettingsError(f"tag {short(word)}: write FIELD=VALUE, such as source=wiki")
        check_name(name)
        found[name] = guessed([value]).read(value)
    return found
