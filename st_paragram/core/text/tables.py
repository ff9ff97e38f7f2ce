r"""Columns of tables, streamed row by row: CSV, TSV with a header, JSON lines and Parquet.

Columns are named. Those of a CSV or TSV without a header, and of JSON lines that are lists, are numbered from 1. The
kind of a table follows from the ending of its file; a table with another ending, or from standard input, is looked at.
A text of a table is one line: line feeds, carriage returns and tabs within a cell become a single space.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.text.streams import ByteStream, open_stream, read_blocks, stream_name
from st_paragram.core.text.table import Table, TableForm, Unreadable, named
from st_paragram.errors import SettingsError, TextError, one_line, short

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    BadRow = Callable[[TextError], None]

_PACKED = (".gz", ".xz", ".bz2")
_BREAKS = re.compile(r"[\r\n\t]+")
_ROWS_AT_A_TIME = 1024


_ENDINGS = {
    ".csv": TableForm.CSV,
    ".jsonl": TableForm.JSONL,
    ".ndjson": TableForm.JSONL,
    ".parquet": TableForm.PARQUET,
    ".tsv": TableForm.TSV,
}


def table_form(path: str) -> TableForm | None:
    """The kind of table that the ending of a file's name stands for; None for any other ending."""
    name = path.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return _ENDINGS.get(Path(name).suffix)


def read_columns(
    path: str, columns: Sequence[str], bad_row: BadRow | None = None
) -> Generator[tuple[str, ...], None, None]:
    """Yield the texts of some columns, row by row; an empty cell is an empty text, an empty line no row.

    Args:
        path: A file, which may be packed by gzip, xz or bzip2 unless it is Parquet; or `-` for standard input.
        columns: Names, or numbers from 1 for a table whose columns have no names, in the order wanted.
        bad_row: Called with the error of a row that cannot be used, which is left out if it returns: a value is missing
            or not text, a row has too many or too few cells. None: the error is raised.

    Raises:
        TextError: The table cannot be read, or has no such column, or a row cannot be used; the message names file, row
            and column.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    with ExitStack() as stack:
        table = open_table(path, stack, columns)
        for values in table.rows():
            texts = _texts(values, columns)
            if not isinstance(texts, Unreadable):
                yield texts
                continue
            error = table.refusal(texts, table.place())
            if bad_row is None:
                raise error
            bad_row(error)


def read_with(table: Table, columns: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Sequence[object]]]:
    """Yield row by row the texts of some columns, and the values of all others that the table was opened for.

    Args:
        table: An open table, see `open_table`.
        columns: Those wanted there.

    Raises:
        TextError: A row cannot be used; the message names file, row and column.
    """
    for values in table.rows():
        if isinstance(values, Unreadable):
            raise table.refusal(values, table.place())
        if isinstance(texts := _texts(values[: len(columns)], columns), Unreadable):
            raise table.refusal(texts, table.place())
        yield texts, values[len(columns) :]


def open_columns(path: str, columns: Sequence[str], stack: ExitStack, bad_row: BadRow | None = None) -> ByteStream:
    r"""Open some columns of a table as lines of UTF-8 text, with tabs between columns: as if the file were plain text.

    Args:
        path: As in `read_columns`.
        columns: As in `read_columns`. None at all: the file is plain text, and opened as such.
        stack: Closes the file when it is closed itself.
        bad_row: As in `read_columns`.

    Raises:
        TextError: As in `read_columns`, here or while it is read.
        MissingExtraError: As in `read_columns`.
    """
    if not columns:
        return open_stream(path, stack)
    return _RowStream(stack.enter_context(closing(read_columns(path, columns, bad_row))))


def column_names(path: str) -> list[str]:
    """The names of the columns of a table, or their numbers.

    Raises:
        TextError: It cannot be read, or is empty.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    with ExitStack() as stack:
        return list(open_table(path, stack).columns)


def check_plain(path: str) -> None:
    """Refuse a table that is to be read as plain text, a line at a time, by the ending of its name.

    Raises:
        TextError: It is CSV, JSON lines or Parquet.
    """
    form = table_form(path)
    if form is None or form is TableForm.TSV:
        return
    seen = f"is a table ({form.value}) with the columns {named(column_names(path))}"
    raise TextError(f"{path}: {seen}; name the text column with --columns NAME")


def one_for_each(columns: Sequence[str | None], texts: Sequence[str]) -> tuple[str | None, ...]:
    """The column of each text, None for plain text, which all texts are if nothing is named.

    Raises:
        SettingsError: There are more or fewer than texts.
    """
    if columns and len(columns) != len(texts):
        raise SettingsError(
            f"{len(columns)} columns for {len(texts)} texts; name one column per text, or None for plain text"
        )
    return tuple(columns) or (None,) * len(texts)


def table_rows(path: str) -> int | None:
    """The number of rows where a table says it, which only Parquet does.

    Raises:
        TextError: It cannot be read.
    """
    with ExitStack() as stack:
        return open_table(path, stack).size


def open_table(path: str, stack: ExitStack, wanted: Sequence[str] = (), others: Sequence[str] = ()) -> Table:
    """Open a table; of its columns those wanted are read.

    Args:
        path: As in `read_columns`.
        stack: Closes the file when it is closed itself.
        wanted: Names of columns or their numbers.
        others: More columns, whose values follow in each row. They may hold anything, and lines of JSON may lack them.

    Raises:
        TextError: It cannot be read, is empty, or has no such column.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    form, name = table_form(path), stream_name(path)
    if form is TableForm.PARQUET or (form is None and _is_parquet(path)):
        from st_paragram.core.text.parquet_table import ParquetTable

        return ParquetTable(path, stack, wanted, others)
    from st_paragram.core.text.text_tables import JsonTable, open_lines

    blocks = read_blocks(name, open_stream(path, stack))
    if form is TableForm.JSONL:
        return JsonTable(name, blocks, wanted, others)
    return open_lines(name, blocks, form, wanted, others)


def _is_parquet(path: str) -> bool:
    if not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False  # reading it as text says why


def _texts(values: Sequence[object] | Unreadable, columns: Sequence[str]) -> tuple[str, ...] | Unreadable:
    """The values of a row as lines of text."""
    if isinstance(values, Unreadable):
        return values
    texts = []
    for value, column in zip(values, columns, strict=True):
        if not isinstance(value, str):
            return Unreadable(f"has {_kind(value)} in column {one_line(column, 80)!r}", "a text is needed there")
        if not value.isprintable():  # nearly all are
            if not _encodable(value):
                seen = f"is not UTF-8 in column {one_line(column, 80)!r}"
                return Unreadable(seen, "convert the file, e.g. with iconv")
            value = _BREAKS.sub(" ", value)
        texts.append(value)
    return tuple(texts)


def _kind(value: object) -> str:
    if value is None:
        return "no value (null)"
    return f"a nested value ({short(value, 40)})" if isinstance(value, dict | list) else f"{short(value, 40)}, not text"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _RowStream:
    """Rows of texts as a stream of lines with tabs between columns."""

    def __init__(self, rows: Iterator[tuple[str, ...]]) -> None:
        self._rows, self._rest = rows, bytearray()

    def read(self, size: int, /) -> bytes:
        while len(self._rest) < size and (rows := list(islice(self._rows, _ROWS_AT_A_TIME))):
            self._rest += "".join(["\t".join(row) + "\n" for row in rows]).encode()
        data = bytes(self._rest[:size])
        del self._rest[:size]
        return data
