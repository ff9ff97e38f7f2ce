r"""Parallel text, streamed row by row: files of two columns, Moses pairs of files, and zip archives of either.

Rows end at ``\n`` and nowhere else. What is repaired or dropped on the way is counted in `ReadCounts`, all else is
refused by file and row. The first language of a pair, English by custom, always comes out first.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from st_paragram.core.files import STDIN
from st_paragram.core.text.streams import (
    BYTE_ORDER_MARK,
    ByteStream,
    decode,
    open_stream,
    read_blocks,
    stream_name,
    unreadable,
)
from st_paragram.core.text.tables import check_plain, open_columns
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError, TextError, one_line, short

_CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z]{2,4})?"
_SPEC = re.compile(rf"({_CODE})-({_CODE}):(.+)", re.DOTALL)
# Every character besides \n and \r at which str.splitlines would cut.
_SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_TRAILING_RETURNS = re.compile(r"(?<!\r)\r+(?=\n|\Z)")  # looked at once a run, however long it is
_NUL, _INVALID = "\0", "\udcff"  # what stands for a line to drop; no line of UTF-8 has a surrogate
_ESCAPED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class TextSource:
    """One parallel text.

    Attributes:
        paths: One file of two columns (or a zip archive), or the two files of a Moses pair, in column order.
        languages: Codes of the columns, or of the two files.
        swapped: The second column is the one that comes out first.
        further_columns: How many columns, such as a score, follow the two texts of a file of columns.
        cap: The most pairs of this text to store, chosen at random.
        codes: What members of a zip archive end in, where that is not `languages`.
        columns: Names of the two columns, in the order of `languages`, if the file is a table (`tables.read_columns`).
        weight: How many copies of each pair are stored; 0.3 stores three pairs in ten, chosen at random.
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
        """`pair` in the codes of `languages`, see `parse_source`, where they differ by a region alone: zh for zh_cn."""
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
    """What reading found and did; characters are counted in the rows that stay.

    Attributes:
        rows: Rows read, dropped ones included.
        nul_rows: Rows dropped because they hold a NUL byte.
        invalid_rows: Rows dropped because they are not UTF-8 (refused unless asked for).
        wrong_columns: Rows dropped because they have a wrong number of columns (refused unless asked for).
        trailing_returns: Lines that lost the carriage returns at their end.
        inner_returns: Carriage returns inside lines, made spaces.
        line_separators: Other line-ending characters of Unicode (U+2028, U+0085, U+001C, ...), made spaces.
        byte_order_marks: Files that began with a byte order mark, which is removed.
    """

    rows: int = 0
    nul_rows: int = 0
    invalid_rows: int = 0
    wrong_columns: int = 0
    trailing_returns: int = 0
    inner_returns: int = 0
    line_separators: int = 0
    byte_order_marks: int = 0


def parse_source(spec: str, languages: tuple[str, str]) -> TextSource:
    """Read a source specification ``[LANG-LANG:]FILE``.

    Args:
        spec: A file, ``-`` for standard input, or either behind the order of its columns, e.g. ``es-en:pairs.tsv``.
            Paraphrases of the first language may be mixed in: ``en-en:paraphrases.tsv``.
        languages: The languages wanted, in the order of the output, e.g. ``("en", "es")``; several with dashes
            between, ``("en", "fr-es-de")``, for one store of many languages, where the prefix is needed.

    Example:
        >>> from st_paragram import parse_source
        >>> source = parse_source("es-en:pairs.tsv", ("en", "es"))  # the first column is Spanish
    """
    match, others = _SPEC.fullmatch(spec), languages[1].split("-")
    if match is None:
        if len(others) > 1:
            seen = f"{spec}: ambiguous language, one of {', '.join(others)}"
            raise SettingsError(f"{seen}; write {languages[0]}-{others[0]}:{spec}")
        return TextSource((spec,), languages)
    first, second, path = match.groups()
    if _fits(first, languages[0]) and (any(_fits(second, other) for other in others) or first == second):
        return TextSource((path,), (first, second))
    if any(_fits(first, other) for other in others) and _fits(second, languages[0]):
        return TextSource((path,), (first, second), swapped=True)
    expected = "-".join(languages)
    raise SettingsError(f"{spec}: columns {first}-{second}, but {expected} is expected; correct one of the two")


def _fits(code: str, language: str) -> bool:
    """Compare language codes; a code without a region stands for all its regions."""
    return language in (code, code.partition("_")[0]) or code == language.partition("_")[0]


def moses_source(first: str, second: str, languages: tuple[str, str]) -> TextSource:
    """Name a Moses pair: two files, row i of the one is the translation of row i of the other."""
    if first == second == STDIN:
        raise SettingsError("only one file of a Moses pair can be standard input; give the other by its path")
    return TextSource((first, second), languages)


def with_columns(sources: Sequence[TextSource], columns: Sequence[Sequence[str]]) -> list[TextSource]:
    """Name the columns of the two languages, once for all sources or once for each; none: the texts must be plain."""
    if not columns:
        for path in (path for source in sources for path in source.paths):
            check_plain(path)
        return list(sources)
    for names in columns:
        if len(names) != 2:
            raise SettingsError(f"{len(names)} columns ({', '.join(names)}); give two, one per language")
    if len(columns) not in (1, len(sources)):
        raise SettingsError(f"{len(columns)} --columns options for {len(sources)} text(s); give one for all, or each")
    each = columns if len(columns) == len(sources) else [columns[0]] * len(sources)
    return [replace(source, columns=tuple(names)) for source, names in zip(sources, each, strict=True)]


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
        source: The text.
        counts: Added to while reading; complete when the iterator is exhausted.
        drop_invalid: Drop and count rows that are not UTF-8 or have a wrong number of columns instead of refusing the
            text; None: refuse it, and do not advise to drop them, since that cannot be asked for.
    """
    counts = counts or ReadCounts()
    start, advice = counts.rows, "" if drop_invalid is None else ", or drop such rows (--drop-invalid)"
    with ExitStack() as stack:
        names, streams = zip(*_open(source, stack, counts, drop_invalid, advice), strict=True)
        blocks = [_line_blocks(*each, counts, drop_invalid, advice) for each in zip(names, streams, strict=True)]
        texts = list(map(chain.from_iterable, blocks))
        if len(texts) == 1:
            rows = _columns(*names, *texts, counts, 2 + source.further_columns, drop_invalid, advice)
        elif source.further_columns:
            raise TextError(f"{source.name}: a pair of files has no further columns; give one file with columns")
        else:
            rows = _side_by_side(names, *texts, counts)
        yield from ((second, first, *rest) for first, second, *rest in rows) if source.swapped else rows
    if counts.rows == start:
        raise TextError(f"{source.name}: empty; give a text with at least one row")


def _open(
    source: TextSource, stack: ExitStack, counts: ReadCounts, drop_invalid: bool | None, advice: str
) -> list[tuple[str, ByteStream]]:
    """Open one stream for two columns, or two streams for a pair of files or of zip members, with their names."""

    def bad_row(error: TextError) -> None:
        if not drop_invalid:
            raise TextError(f"{error}{advice}") from error
        counts.rows += 1
        counts.wrong_columns += 1

    path = source.paths[0]
    if source.columns:
        return [(source.name, open_columns(path, source.columns, stack, bad_row))]
    if len(source.paths) == 2 or not path.lower().endswith(".zip"):
        return [(stream_name(path), open_stream(path, stack)) for path in source.paths]
    with unreadable(path):
        archive = stack.enter_context(zipfile.ZipFile(path))
        members = _members(archive, source.codes or source.languages)
        return [(f"{path}:{one_line(member)}", stack.enter_context(archive.open(member))) for member in members]


def _members(archive: zipfile.ZipFile, languages: tuple[str, str]) -> list[str]:
    """A member for each language by its ending (OPUS: `Corpus.en-es.es`), else the only member there is."""
    files = [name for name in archive.namelist() if not name.endswith("/")]
    first, second = ([name for name in files if _fits(name.rpartition(".")[2], code)] for code in languages)
    if first != second and len(first) == len(second) == 1:
        return [*first, *second]
    if len(files) == 1:
        return files
    endings, seen = " and ".join(f".{code}" for code in languages), one_line(", ".join(files)) or "none"
    advice = "name its codes as in en-zh_cn:FILE, or unpack it"
    raise TextError(f"{archive.filename}: needs one member for each of {endings}, its members are {seen}; {advice}")


def _line_blocks(
    name: str, stream: ByteStream, counts: ReadCounts, drop_invalid: bool | None, advice: str
) -> Iterator[list[str]]:
    """Decode blocks into cleaned lines; one that must be dropped becomes `_NUL` or `_INVALID`."""
    row = 0
    for block in read_blocks(name, stream):
        if row == 0 and block.startswith(BYTE_ORDER_MARK):
            counts.byte_order_marks += 1
            block = block[len(BYTE_ORDER_MARK) :]
        try:
            lines = _clean(decode(name, block, row + 1, advice), counts).split("\n")
        except TextError:
            if not drop_invalid:
                raise
            decoded = block.decode("utf-8", "surrogateescape").split("\n")
            lines = [_INVALID if _ESCAPED.search(line) else _clean(line, counts) for line in decoded]
        if b"\0" in block:
            lines = [_NUL if _NUL in line else line for line in lines]
        row += len(lines)
        yield lines


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


def _columns(
    name: str, lines: Iterable[str], counts: ReadCounts, expected: int, drop_invalid: bool | None, advice: str
) -> Iterator[tuple[str, ...]]:
    for row, line in enumerate(lines, 1):
        counts.rows += 1
        columns = tuple(line.split("\t"))
        if len(columns) == expected:
            yield columns
        elif line in (_NUL, _INVALID):
            _drop(line, counts)
        elif not line.strip():
            yield ("",) * expected
        elif drop_invalid:
            counts.wrong_columns += 1
        else:
            raise TextError(f"{wrong_columns(name, row, line, expected)}{advice}")


def wrong_columns(name: str, row: int, line: str, expected: int = 2) -> str:
    """What to say of a row that has another number of columns."""
    seen = f"{counted(line.count(chr(9)) + 1, 'column')} ({short(line, 60)}), where {expected} are expected"
    return f"{name}: row {row} has {seen}; put one tab between columns"


def _side_by_side(
    names: Sequence[str], first: Iterator[str], second: Iterator[str], counts: ReadCounts
) -> Iterator[tuple[str, ...]]:
    for row, (one, other) in enumerate(zip_longest(first, second)):
        if one is None or other is None:
            longer = row + 1 + sum(1 for _ in chain(first, second))
            rows = (row, longer) if one is None else (longer, row)
            raise unequal(names, rows)
        counts.rows += 1
        if one not in (_NUL, _INVALID) and other not in (_NUL, _INVALID):
            yield one, other
        else:
            _drop(one if one in (_NUL, _INVALID) else other, counts)


def unequal(names: Sequence[str], rows: Sequence[int]) -> TextError:
    """The error for files of a pair that have these numbers of rows."""
    seen = " and ".join(f"{name} has {counted(count, 'row')}" for name, count in zip(names, rows, strict=True))
    return TextError(f"{seen}; the files of a pair need equal numbers of rows")


def _drop(line: str, counts: ReadCounts) -> None:
    if line == _NUL:
        counts.nul_rows += 1
    else:
        counts.invalid_rows += 1
