"""Tables that are text: CSV, TSV and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from st_paragram.core.text.streams import BYTE_ORDER_MARK, MAX_LINE_BYTES
from st_paragram.core.text.table import Table, TableForm, Unreadable, places_of
from st_paragram.errors import TextError, one_line

_DELIMITERS = ",;\t"


class JsonTable(Table):
    """JSON lines: an object on each line, whose members are the columns, or a list, whose columns are numbered."""

    def __init__(self, name: str, blocks: Iterable[bytes], wanted: Sequence[str], others: Sequence[str] = ()) -> None:
        """Look at the first row.

        Raises:
            TextError: It has no such columns, or there is none.
        """
        self.name, self._wanted, self._others, self._line = name, wanted, others, 0
        self._lines = _json_lines(blocks)
        first = next(self._lines, None)
        if first is None:
            raise _empty(name)
        self._lines = chain([first], self._lines)
        value = parse_or_none(first[1])
        self.columns = _members(value)
        if isinstance(value, dict | list) and (lacking := [name for name in wanted if name not in self.columns]):
            raise self.refusal(self.missing(lacking[0], self.columns), f"line {first[0]}")

    def rows(self) -> Iterator[Sequence[object] | Unreadable]:
        """Yield the values, or why a line cannot be read."""
        for line_number, line in self._lines:
            self._line = line_number
            yield self._values(line)

    def place(self) -> str:
        """The line."""
        return f"line {self._line}"

    def _values(self, line: bytes) -> Sequence[object] | Unreadable:
        try:
            value: object = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            return Unreadable(f"is not UTF-8 ({one_line(error)})", "convert the file, e.g. with iconv")
        except (ValueError, RecursionError) as error:
            why = error.msg if isinstance(error, json.JSONDecodeError) else one_line(error)
            return Unreadable(f"is not JSON ({why})", "each line of such a file is one JSON object")
        try:
            if isinstance(value, dict):
                return [*(value[column] for column in self._wanted), *map(value.get, self._others)]
            if isinstance(value, list):
                others = [value[_number(column)] if _number(column) < len(value) else None for column in self._others]
                return [*(value[_number(column)] for column in self._wanted), *others]
        except LookupError:
            there = _members(value)
            return self.missing(next(column for column in self._wanted if column not in there), there)
        return Unreadable("is neither an object nor a list of JSON", "each line of such a file is one JSON object")


def _number(column: str) -> int:
    """Where a column of a list is; beyond every list if it has a name."""
    return int(column) - 1 if _is_number(column) else MAX_LINE_BYTES


def _is_number(column: str) -> bool:
    return column.isascii() and column.isdigit() and 0 < len(column) < 6 and int(column) > 0


def _members(value: object) -> list[str]:
    if isinstance(value, dict):
        return list(value)
    return [str(number + 1) for number in range(len(value))] if isinstance(value, list) else []


def parse_or_none(line: bytes) -> object:
    """The value of a line of JSON; None for any other line."""
    try:
        value: object = json.loads(line)
    except ValueError:
        return None
    return value


def _json_lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank with their numbers."""
    done = 0
    for block in blocks:
        lines = (block if done else block.removeprefix(BYTE_ORDER_MARK)).split(b"\n")
        yield from ((number, line) for number, line in enumerate(lines, done + 1) if line.strip())
        done += len(lines)


def open_lines(
    name: str, blocks: Iterable[bytes], form: TableForm | None, wanted: Sequence[str], others: Sequence[str] = ()
) -> Table:
    """Open CSV, TSV, or a table of which the first line says what it is.

    Args:
        name: What messages call it.
        blocks: As `read_blocks` gives them.
        form: CSV or TSV; None: see for yourself, JSON lines may be found, too.
        wanted: Names of columns or their numbers.
        others: More columns, see `tables.open_table`.

    Raises:
        TextError: It is empty, or has no such columns.
    """
    blocks = iter(blocks)
    head = next((block for block in blocks if block.removeprefix(BYTE_ORDER_MARK).strip()), None)
    if head is None:
        raise _empty(name)
    first = head.removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")[0]
    blocks = chain([head], blocks)
    if form is TableForm.TSV and b"\t" not in first and (b"," in first or b";" in first):
        form = None  # a wrong ending is more likely than one column
    if form is None:
        if isinstance(parse_or_none(first), dict | list):
            return JsonTable(name, blocks, wanted, others)
        form = TableForm.TSV if b"\t" in first else TableForm.CSV
    return CellTable(name, blocks, form, [*wanted, *others])


class CellTable(Table):
    """CSV or TSV: the first row has the names of the columns, unless the columns wanted are numbers.

    CSV is read by Python's `csv`; the delimiter, a comma, semicolon or tab, is the one that gives the first row the
    columns wanted, or the most columns. A TSV has no quotation marks that mean anything.
    """

    def __init__(self, name: str, blocks: Iterable[bytes], form: TableForm, wanted: Sequence[str]) -> None:
        """Read the header.

        Raises:
            TextError: It lacks a column.
        """
        self.name, self._start = name, 1
        lines = _lines(blocks)
        blank, first = next(((number, line) for number, line in enumerate(lines) if line.strip()), (0, ""))
        lines = chain([first], lines)
        self._cells = _tsv(lines, blank) if form is TableForm.TSV else _csv(lines, blank, _delimiter(first, wanted))
        start, header = next(self._cells)
        if isinstance(header, Unreadable):
            raise self.refusal(header, "the first row")
        self.columns, self._width = header, len(header)
        if wanted and all(map(_is_number, wanted)) and not set(wanted) <= set(header):
            self.columns = [str(number + 1) for number in range(len(header))]
            self._cells = chain([(start, header)], self._cells)
        self._places = places_of(self, wanted)

    def rows(self) -> Iterator[Sequence[object] | Unreadable]:
        """Yield the cells, or why a row cannot be read."""
        places, width = self._places, self._width
        for start, cells in self._cells:
            self._start, self.row = start, self.row + 1
            if isinstance(cells, Unreadable):
                yield cells
            elif len(cells) != width:
                seen = f"has {len(cells)} cells where the first row has {width}"
                yield Unreadable(seen, "correct the row; a cell of CSV with a comma needs quotation marks")
            else:
                yield [cells[place] for place in places]

    def place(self) -> str:
        """The row, and the line that it begins on."""
        return f"row {self.row} (line {self._start})"


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    r"""Lines with their `\n`; bytes that are not UTF-8 become surrogates, which are found where a cell is used."""
    first = True
    for block in blocks:
        lines = (block.removeprefix(BYTE_ORDER_MARK) if first else block).decode("utf-8", "surrogateescape").split("\n")
        first = False
        if b"\r" in block:
            lines = [line.rstrip("\r") for line in lines]
        yield from [f"{line}\n" for line in lines]


def _tsv(lines: Iterable[str], before: int) -> Iterator[tuple[int, Sequence[str]]]:
    """The cells of the lines that are not blank with the numbers of the lines, of which some came before."""
    return ((number, line[:-1].split("\t")) for number, line in enumerate(lines, before + 1) if line.strip())


def _csv(lines: Iterable[str], before: int, delimiter: str) -> Iterator[tuple[int, Sequence[str] | Unreadable]]:
    """The rows that are not blank with the numbers of their first lines, of which some came before."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # Python's own is 128 KiB
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = before + rows.line_num + 1
        try:
            for row in rows:
                if row:
                    yield start, row
                start = before + rows.line_num + 1
        except csv.Error as error:
            yield start, Unreadable(f"is not CSV ({one_line(error)})", "is a quotation mark open, or not doubled?")
        else:
            return


def _delimiter(first: str, wanted: Sequence[str]) -> str:
    """The delimiter of a CSV, by its first line."""

    def fit(delimiter: str) -> tuple[bool, int]:
        cells = next(csv.reader([first], delimiter=delimiter), [])
        return bool(wanted) and set(wanted) <= set(cells), len(cells)

    return max(_DELIMITERS, key=fit)


def _empty(name: str) -> TextError:
    return TextError(f"{name}: empty; give a table with at least one row")
