r"""Parallel text, streamed row by row: tab-separated files, Moses pairs of files, and OPUS zip archives.

Rows end at ``\n`` and nowhere else. What is repaired or dropped on the way is counted in `ReadCounts`; what cannot be
repaired safely (files of unequal length, rows of a wrong number of columns or not in UTF-8) is refused by
file and row; such rows can be dropped instead. The first language of a pair, English by custom, always comes out first.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from st_paragram.core.files import STDIN
from st_paragram.core.text.streams import (
    BYTE_ORDER_MARK,
    ByteStream,
    is_zip,
    open_member,
    open_stream,
    open_zip,
    read_blocks,
    stream_name,
)
from st_paragram.errors import SettingsError, TextError, one_line

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterable, Iterator

_CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z]{2,4})?"
_SPEC = re.compile(rf"({_CODE})-({_CODE}):(.+)", re.DOTALL)
# Every character besides \n and \r at which str.splitlines would cut.
_SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_TRAILING_RETURNS = re.compile(r"(?<!\r)\r+(?=\n|\Z)")  # looked at once a run, however long it is


@dataclass(frozen=True)
class TextSource:
    """One parallel text.

    Attributes:
        paths: one file of two columns (or a zip archive), or the two files of a Moses pair, in column order.
        languages: codes of the columns, or of the two files.
        swapped: the second column is the one that comes out first.
        further_columns: how many columns, such as a score, follow the two texts; only a file of columns has any.
        cap: the most pairs of this text to store, chosen at random.
        codes: what members of a zip archive end in, where that is not `languages`.
        columns: the names of the two columns, in the order of `languages`, if the file is a table (see
            `tables.read_columns`); none if it is plain text.
        weight: how many copies of each pair are stored; 0.3 stores three pairs in ten, chosen at random.
    """

    paths: tuple[str, ...]
    languages: tuple[str, str]
    swapped: bool = False
    further_columns: int = 0
    cap: int | None = None
    codes: tuple[str, str] | None = None
    columns: tuple[str, ...] = ()
    weight: float = 1.0

    @property
    def pair(self) -> tuple[str, str]:
        """The languages in the order in which texts come out."""
        return (self.languages[1], self.languages[0]) if self.swapped else self.languages

    def pair_among(self, languages: tuple[str, str]) -> tuple[str, str]:
        """`pair` in the codes of the languages wanted, where codes differ by a region alone: zh for zh_cn.

        Args:
            languages: the languages wanted, as for `parse_source`.
        """
        wanted = [languages[0], *languages[1].split("-")]
        first, second = (
            code if code in wanted else next((known for known in wanted if _fits(code, known)), code)
            for code in self.pair
        )
        return first, second

    @property
    def name(self) -> str:
        """The file, or both files, for messages and reports."""
        return " + ".join(map(stream_name, self.paths))


@dataclass
class ReadCounts:
    """What reading found and did: rows in all, rows dropped, and characters repaired in the rows that stay.

    Attributes:
        rows: rows read, dropped ones included.
        nul_rows: rows dropped because they hold a NUL byte.
        invalid_rows: rows dropped because they are not UTF-8 (refused unless asked for).
        wrong_columns: rows dropped because they have a wrong number of columns (refused unless asked for).
        trailing_returns: lines that lost the carriage returns at their end.
        inner_returns: carriage returns inside lines, made spaces.
        line_separators: other line-ending characters of Unicode (U+2028, U+0085, U+001C, ...), made spaces.
        byte_order_marks: files that began with a byte order mark, which is removed.
    """

    rows: int = 0
    nul_rows: int = 0
    invalid_rows: int = 0
    wrong_columns: int = 0
    trailing_returns: int = 0
    inner_returns: int = 0
    line_separators: int = 0
    byte_order_marks: int = 0


class _BadRow(Enum):
    NUL = "NUL byte"
    INVALID = "invalid UTF-8"


def parse_source(spec: str, languages: tuple[str, str]) -> TextSource:
    """Read a source specification ``[LANG-LANG:]FILE``.

    Args:
        spec: a file, ``-`` for standard input, or either behind the order of its columns, e.g.
            ``es-en:pairs.tsv``. Without the prefix the columns are in the order of `languages`. Paraphrases of the
            first language may be mixed in: ``en-en:paraphrases.tsv``.
        languages: the languages wanted, in the order of the output, e.g. ``("en", "es")``; several
            with dashes between, ``("en", "fr-es-de")``, for one store of many languages.

    Raises:
        SettingsError: the prefix names other languages than `languages`, or is missing where there are several.

    Example:
        >>> from st_paragram import parse_source
        >>> source = parse_source("es-en:pairs.tsv", ("en", "es"))  # the first column is Spanish
    """
    match = _SPEC.fullmatch(spec)
    others = languages[1].split("-")
    if match is None:
        if len(others) > 1:
            raise SettingsError(
                f"{spec}: ambiguous language, one of {', '.join(others)}; write {languages[0]}-{others[0]}:{spec}"
            )
        return TextSource((spec,), languages)
    first, second, path = match.groups()
    if _fits(first, languages[0]) and (any(_fits(second, other) for other in others) or first == second):
        return TextSource((path,), (first, second))
    if any(_fits(first, other) for other in others) and _fits(second, languages[0]):
        return TextSource((path,), (first, second), swapped=True)
    expected = "-".join(languages)
    raise SettingsError(f"{spec}: columns {first}-{second}, but {expected} is expected; correct one of the two")


def moses_source(first: str, second: str, languages: tuple[str, str]) -> TextSource:
    """Name a Moses pair: two files, row i of the one is the translation of row i of the other.

    Raises:
        SettingsError: both files are standard input.
    """
    if first == second == STDIN:
        raise SettingsError("only one file of a Moses pair can be standard input; give the other by its path")
    return TextSource((first, second), languages)


def read_pairs(
    source: TextSource, counts: ReadCounts | None = None, drop_invalid: bool | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a source, as `read_rows` does, without further columns."""
    return ((row[0], row[1]) for row in read_rows(source, counts, drop_invalid))


def read_rows(
    source: TextSource, counts: ReadCounts | None = None, drop_invalid: bool | None = None
) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a source in their order, wholly blank rows of files of columns as empty strings.

    Args:
        source: the text.
        counts: added to while reading; complete when the iterator is exhausted.
        drop_invalid: drop and count rows that are not UTF-8 or have a wrong number of columns instead of
            refusing the text; None: refuse it, and do not advise to drop them, since that cannot be asked for.

    Raises:
        TextError: the text is missing, empty, cut off, not UTF-8, has rows of another number of columns, or
            the files of a pair are of unequal length. The message names file and row.
    """
    counts = ReadCounts() if counts is None else counts
    start = counts.rows
    with ExitStack() as stack:
        texts = [
            (name, chain.from_iterable(_line_blocks(name, stream, counts, drop_invalid)))
            for name, stream in _open_source(source, stack, counts, drop_invalid)
        ]
        if len(texts) == 1:
            rows = _tabbed_rows(*texts[0], counts, 2 + source.further_columns, drop_invalid)
        elif source.further_columns:
            raise TextError(f"{source.name}: a pair of files has no further columns; give one file with columns")
        else:
            rows = _moses_pairs(*texts[0], *texts[1], counts)
        yield from ((second, first, *rest) for first, second, *rest in rows) if source.swapped else rows
    if counts.rows == start:
        raise TextError(f"{source.name}: empty; give a text with at least one row")


def _open_source(
    source: TextSource, stack: ExitStack, counts: ReadCounts, drop_invalid: bool | None
) -> list[tuple[str, ByteStream]]:
    """Open one stream for two columns, or two streams for a pair of files or of zip members."""
    if source.columns:
        from st_paragram.core.text.tables import open_columns

        def bad_row(error: TextError) -> None:
            if not drop_invalid:
                raise TextError(f"{error}{_or_drop(drop_invalid)}") from error
            counts.rows += 1
            counts.wrong_columns += 1

        return [(source.name, open_columns(source.paths[0], source.columns, stack, bad_row))]
    if len(source.paths) == 2 or not is_zip(source.paths[0]):
        return [(stream_name(path), open_stream(path, stack)) for path in source.paths]
    archive = open_zip(source.paths[0], stack)
    members = _choose_members(archive, source.codes or source.languages)
    return [(f"{source.paths[0]}:{one_line(member)}", open_member(archive, member, stack)) for member in members]


def _choose_members(archive: zipfile.ZipFile, languages: tuple[str, str]) -> list[str]:
    """Pick a member per language by its ending (OPUS: ``Corpus.en-es.es``), else the only member there is."""
    files = [name for name in archive.namelist() if not name.endswith("/")]
    by_language = [[name for name in files if _fits(name.rpartition(".")[2], code)] for code in languages]
    if languages[0] != languages[1] and [len(names) for names in by_language] == [1, 1]:
        return [names[0] for names in by_language]
    if len(files) == 1:
        return files
    endings = " and ".join(f".{code}" for code in dict.fromkeys(languages))
    shown = one_line(", ".join(files[:6])) + (", ..." if len(files) > 6 else "")
    raise TextError(
        f"{archive.filename}: needs one member ending in each of {endings}, or a single two-column member; "
        f"it has {len(files)} ({shown}); name its codes as in en-zh_cn:FILE, or unpack it"
    )


def _fits(code: str, language: str) -> bool:
    """Compare language codes; a code without a region stands for all its regions."""
    return code == language or (("_" not in language or "_" not in code) and _base(code) == _base(language))


def _base(code: str) -> str:
    return code.partition("_")[0]


def _line_blocks(
    name: str, stream: ByteStream, counts: ReadCounts, drop_invalid: bool | None
) -> Iterator[Iterable[str | _BadRow]]:
    """Decode blocks into cleaned lines; a line that must be dropped becomes a `_BadRow`."""
    row = 0
    for block in read_blocks(name, stream):
        if row == 0 and block.startswith(BYTE_ORDER_MARK):
            counts.byte_order_marks += 1
            block = block[len(BYTE_ORDER_MARK) :]
        try:
            lines: list[str | _BadRow] = list(_clean(block.decode("utf-8"), counts).split("\n"))
        except UnicodeDecodeError:
            raw = enumerate(block.split(b"\n"), row + 1)
            lines = [_decode_line(name, number, line, counts, drop_invalid) for number, line in raw]
        if b"\0" in block:
            lines = [_BadRow.NUL if isinstance(line, str) and "\0" in line else line for line in lines]
        row += len(lines)
        yield lines


def _decode_line(name: str, row: int, line: bytes, counts: ReadCounts, drop_invalid: bool | None) -> str | _BadRow:
    try:
        return _clean(line.decode("utf-8"), counts)
    except UnicodeDecodeError as error:
        if drop_invalid:
            return _BadRow.INVALID
        seen = f"row {row} is not UTF-8 (byte 0x{line[error.start]:02x} at byte {error.start + 1} of the row)"
        raise TextError(f"{name}: {seen}; convert the file with iconv{_or_drop(drop_invalid)}") from error


def _clean(text: str, counts: ReadCounts) -> str:
    r"""Take carriage returns from line ends and make other line-ending characters spaces; ``\n`` stays."""
    if "\r" in text:
        text, found = _TRAILING_RETURNS.subn("", text)
        counts.trailing_returns += found
        counts.inner_returns += text.count("\r")
        text = text.replace("\r", " ")
    if any(separator in text for separator in _SEPARATORS):
        text, found = _SEPARATOR.subn(" ", text)
        counts.line_separators += found
    return text


def _tabbed_rows(
    name: str, lines: Iterable[str | _BadRow], counts: ReadCounts, expected: int, drop_invalid: bool | None
) -> Iterator[tuple[str, ...]]:
    for row, line in enumerate(lines, 1):
        counts.rows += 1
        if isinstance(line, _BadRow):
            _count_bad(line, counts)
            continue
        columns = tuple(line.split("\t"))
        if len(columns) == expected:
            yield columns
        elif not line.strip():
            yield ("",) * expected
        elif drop_invalid:
            counts.wrong_columns += 1
        else:
            raise TextError(wrong_columns(name, row, columns, expected) + _or_drop(drop_invalid))


def wrong_columns(name: str, row: int, columns: tuple[str, ...], expected: int) -> str:
    """What is wrong with a row of another number of columns, in one line.

    Args:
        name: the file.
        row: its number, from 1.
        columns: what it has.
        expected: how many columns it should have.
    """
    found = f"{len(columns)} columns" if len(columns) > 1 else "1 column"
    last = columns[-1] if len(columns[-1]) <= 30 else columns[-1][:27] + "..."
    remedy = "keep only the two text columns, e.g. with `cut -f1,2 FILE`"
    if len(columns) < expected or expected > 2:
        remedy = "put one tab between the texts" if expected == 2 else "correct the row, or name the columns"
    seen = f"row {row} has {found}, the last {last!r}, where {expected} are expected"
    return f"{name}: {seen}; {remedy}"


def _or_drop(drop_invalid: bool | None) -> str:
    return "" if drop_invalid is None else ", or drop such rows (--drop-invalid)"


def _moses_pairs(
    first_name: str,
    first: Iterable[str | _BadRow],
    second_name: str,
    second: Iterable[str | _BadRow],
    counts: ReadCounts,
) -> Iterator[tuple[str, ...]]:
    for row, (one, other) in enumerate(zip_longest(first, second)):
        if one is None or other is None:
            short, long = (first_name, second_name) if one is None else (second_name, first_name)
            seen = f"ends after row {row}, but {long} goes on"
            raise TextError(f"{short}: {seen}; a Moses pair needs equal numbers of rows")
        counts.rows += 1
        if isinstance(one, str) and isinstance(other, str):
            yield one, other
        else:
            _count_bad(one if isinstance(one, _BadRow) else other, counts)


def _count_bad(line: object, counts: ReadCounts) -> None:
    if line is _BadRow.NUL:
        counts.nul_rows += 1
    else:
        counts.invalid_rows += 1
