r"""Columns of tables, streamed row by row; the file extension determines the format.

    .csv              commas, semicolons or tabs between cells, and quotation marks
    .jsonl, .ndjson   one JSON object per line
    .parquet          needs pyarrow (extra `parquet`)
    any other, or -   tabs between cells, quotation marks have no meaning

All formats except Parquet may be compressed (`pairs.csv.gz`). The first row of CSV and
tab-separated text has the column names, unless columns are requested by number, from 1. A text is
one line: line feeds, carriage returns and tabs within a cell become a single space.
`translation.en` is the member `en` of the column `translation` of JSON objects and Parquet files,
unless a column has this name.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any

from st_paragram.core.extras import require
from st_paragram.core.text import streams
from st_paragram.core.text.streams import open_stream, stream_name
from st_paragram.errors import TextError, one_line, refused, short

#: Row numbers (Parquet) or the numbers of the lines where rows begin, and values; an error text for
#: a row, or None for a blank line.
_Rows = Iterator[tuple[int, list[Any] | str | None]]
#: Text of a damaged row; in the texts of other rows, tabs are spaces.
DAMAGED = "\t"

TABBED = "tab-separated"
CSV = "CSV"
JSON = "JSON lines"
PARQUET = "Parquet"
_FORMS = {".csv": CSV, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET}
PLAIN_ONLY = "give plain text, one sentence per line"  # advice where columns cannot be named
_BREAKS = re.compile(r"[\r\n\t]+")
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_BATCH_ROWS = 1024  # of Parquet
_DELIMITERS = ",;\t"  # of CSV; spreadsheets of many countries write semicolons
#: Column of the Hugging Face Hub's parallel texts, with a member per language
TRANSLATION = "translation"


def table_form(path: str) -> str:
    """Return the table format of a file by its name: `TABBED`, `CSV`, `JSON` or `PARQUET`."""
    return _FORMS.get(streams.unpacked_suffix(path), TABBED)


def check_plain(path: str, advice: str = "name its columns with --columns NAME") -> None:
    """Refuse to read a table as plain or tab-separated text."""
    form = table_form(path)
    if form != TABBED:
        raise TextError(f"{path}: is a table ({form}); {advice}")


def translation_columns(path: str, languages: Sequence[str]) -> tuple[str, ...]:
    """Return the Hub's names of the columns of parallel text; none for plain text."""
    if table_form(path) not in (JSON, PARQUET):
        check_plain(path)
        return ()
    return tuple(f"{TRANSLATION}.{language}" for language in languages)


def _refuse(error: TextError) -> None:
    raise error


def read_columns(
    path: str,
    columns: Sequence[str],
    others: Sequence[str] = (),
    bad_row: Callable[[TextError], None] = _refuse,
    keep_blank: bool = False,
) -> Generator[tuple[Any, ...], None, None]:
    """Yield the texts of some columns, row by row; an empty cell is an empty text.

    The values of the columns `others` follow unchanged, None if a JSON object lacks them. The error
    of a damaged row is passed to `bad_row`, which raises it by default; if it returns, the texts of
    the row are `DAMAGED`. Blank lines are skipped; with `keep_blank`, those before a row have empty
    texts.
    """
    form = table_form(path)
    wanted = [*columns, *others]
    if form == JSON:
        rows = _json_rows(path, wanted)
    elif form == PARQUET:
        rows = _parquet_rows(path, wanted)
    else:
        rows = _cell_rows(path, wanted)
    blanks = 0
    for number, values in rows:
        if values is None:
            blanks += keep_blank
            continue
        while blanks:
            blanks -= 1
            yield ("",) * len(columns) + (None,) * len(others)
        wrong = values if isinstance(values, str) else _make_texts(values, columns)
        if wrong is None:
            yield tuple(values)
        else:
            unit = "row" if form == PARQUET else "line"
            bad_row(TextError(f"{stream_name(path)}: {unit} {number} {wrong}"))
            yield (DAMAGED,) * len(wanted)


def read_texts(path: str, column: str | None) -> Iterator[str]:
    """Yield the lines of a plain text, or the texts of a column of a table."""
    if column is None:
        check_plain(path)
        return streams.read_lines(path)
    return (text for (text,) in read_columns(path, [column]))


def _make_texts(values: list[Any], columns: Sequence[str]) -> str | None:
    """Convert the first values to texts in place; return an error text for a wrong value."""
    for place, column in enumerate(columns):
        value = values[place]
        if not isinstance(value, str):
            shown = "no value" if value is None else short(value, 40)
            is_nested = column.startswith(f"{TRANSLATION}.")
            advice = "name the columns with --columns" if is_nested else "give a text"
            return f"has {shown} in column {column!r}; {advice}"
        if not value.isprintable():  # nearly all are
            if _NOT_UTF8.search(value):
                return f"is not UTF-8 in column {column!r}; convert the file, e.g. with iconv"
            values[place] = _BREAKS.sub(" ", value)
    return None


def _places(path: str, names: list[str], wanted: Sequence[str]) -> list[int]:
    for column in wanted:
        if names.count(column) != 1:
            problem = "two columns" if column in names else "no column"
            raise TextError(
                f"{stream_name(path)}: {problem} {column!r}"
                f" (its columns are {one_line(', '.join(names))}); correct the name"
            )
    return [names.index(column) for column in wanted]


def _lines(path: str) -> Iterator[str]:
    r"""Yield lines with their `\n`; bytes that are not UTF-8 become surrogates.

    They are detected when a cell is used.
    """
    mark = streams.BYTE_ORDER_MARK
    with ExitStack() as stack:
        for block in streams.read_blocks(stream_name(path), open_stream(path, stack)):
            text = block.removeprefix(mark).decode("utf-8", "surrogateescape") + "\n"
            mark = b""
            if "\r" in text:
                text = streams.TRAILING_RETURNS.sub("", text).replace("\r", " ")
            yield from io.StringIO(text, newline="\n")


def _json_rows(path: str, wanted: Sequence[str]) -> _Rows:
    for number, line in enumerate(_lines(path), 1):
        if line.isspace():
            yield number, None
            continue
        try:
            row = json.loads(line)
            values = [_json_value(row, column) for column in wanted]
        except (ValueError, AttributeError, RecursionError) as error:
            yield number, f"is not a JSON object ({one_line(error)}); correct it"
        else:
            yield number, values


def _json_value(row: dict[str, Any], column: str) -> Any:
    """Return the value of a column, or of a member of a column (`translation.en`), or None."""
    if column in row or "." not in column:
        return row.get(column)
    parent, _, member = column.partition(".")
    value = row.get(parent)
    return value.get(member) if isinstance(value, dict) else None


def _parquet_rows(path: str, wanted: Sequence[str]) -> _Rows:
    parquet = require("pyarrow.parquet", "parquet", f"{path}: a Parquet table")
    advice = "if it is damaged or compressed, download it again or decompress it"
    with (
        refused(TextError, path, "cannot be read as Parquet", advice),
        parquet.ParquetFile(path) as file,
    ):
        names = _parquet_columns(file.schema_arrow)
        _places(path, list(names), wanted)
        columns = list(dict.fromkeys(names[name][0] for name in wanted))
        number = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            values = [_parquet_values(batch, names[name]) for name in wanted]
            for row in zip(*values, strict=True):
                number += 1
                yield number, list(row)


def _parquet_columns(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return name -> path of the columns of a Parquet file, and of members of its structures."""
    import pyarrow as pa

    columns: dict[str, tuple[str, ...]] = {name: (name,) for name in schema.names}
    for field in schema:
        if pa.types.is_struct(field.type):
            for member in field.type:
                columns.setdefault(f"{field.name}.{member.name}", (field.name, member.name))
    return columns


def _parquet_values(batch: Any, path: tuple[str, ...]) -> list[Any]:
    """Return the values of a column of a batch, or of a member of a column, with None for none."""
    values = batch.column(path[0]).to_pylist()
    for member in path[1:]:
        values = [None if value is None else value[member] for value in values]
    return values


def _delimiter(header: str, wanted: Sequence[str]) -> str:
    """Return the delimiter of a CSV file: one that separates the wanted names, or most cells."""

    def columns(delimiter: str) -> tuple[int, int]:
        cells = next(csv.reader([header], delimiter=delimiter), [])
        return len(set(wanted) & set(cells)), len(cells)

    return max(_DELIMITERS, key=columns)


def _until_header(lines: Iterator[str]) -> Iterator[str]:
    """Yield blank lines and the line after them."""
    for line in lines:
        yield line
        if not line.isspace():
            return


def _cell_rows(path: str, wanted: Sequence[str]) -> _Rows:
    # Python's default is 128 KiB
    csv.field_size_limit(max(csv.field_size_limit(), streams.MAX_LINE_BYTES))
    lines = _lines(path)
    if table_form(path) == CSV:
        beginning = list(_until_header(lines))
        delimiter = _delimiter("".join(beginning[-1:]), wanted)
        reader = csv.reader(chain(beginning, lines), strict=True, delimiter=delimiter)
    else:
        delimiter = "\t"
        reader = csv.reader(lines, strict=True, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    rows: Iterator[list[str]] = iter(reader)
    try:
        names = next((cells for cells in rows if cells), [])
        if not names:
            raise TextError(f"{stream_name(path)}: empty; give a table with at least one row")
        width = len(names)
        if all(column.isdecimal() for column in wanted) and not set(wanted) <= set(names):
            rows = chain([names], rows)
            names = [str(number) for number in range(1, width + 1)]
        places = _places(path, names, wanted)
        for cells in rows:
            if not cells:
                yield reader.line_num, None
            elif len(cells) == width:
                yield reader.line_num, [cells[place] for place in places]
            else:
                problem = f"has {len(cells)} cells, but the first row has {width}"
                advice = f"a CSV cell with {delimiter!r} needs quotation marks around it"
                yield reader.line_num, f"{problem}; {advice}"
    except csv.Error as error:  # of unknown size: an open quotation mark may span many rows
        raise TextError(
            f"{stream_name(path)}: line {reader.line_num} is not CSV ({one_line(error)});"
            " close or double its quotation marks"
        ) from error
