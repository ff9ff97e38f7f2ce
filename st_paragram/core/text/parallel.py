r"""Parallel text, streamed row by row: files of two columns, Moses pairs of files, and zip archives
of either.

Rows end only at ``\n``. Repaired and dropped rows are counted in `ReadCounts`; other problems are
errors that name the file and the row. The first language of a pair, usually English, always comes
first in the result.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import PurePosixPath

from st_paragram.core.formatting import counted
from st_paragram.core.text import streams
from st_paragram.core.text.streams import BYTE_ORDER_MARK, ByteStream, stream_name
from st_paragram.core.text.tables import DAMAGED, check_plain, open_columns, translation_columns
from st_paragram.errors import SettingsError, TextError, one_line, short

_CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z]{2,4})?"
_SPEC = re.compile(rf"({_CODE})-({_CODE}):(.+)", re.DOTALL)
# The characters other than \n and \r at which str.splitlines splits.
_SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_NUL, _INVALID = "\0", "\udcff"  # placeholders for lines to drop
_ESCAPED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class TextSource:
    """One parallel text: a file of two columns (or a zip archive), or the two files of a Moses
    pair.
    """

    paths: tuple[str, ...]
    languages: tuple[str, str]  # of the columns, or of the two files
    swapped: bool = False  # the second column comes first in the result
    further_columns: int = 0  # columns after the two texts, such as a score
    cap: int | None = None  # maximum pairs of this text to store, chosen at random
    # endings of a zip archive's members, if they differ from `languages`
    codes: tuple[str, str] | None = None
    # names of the two text columns, in the order of `languages`, if the text is a table
    columns: tuple[str, ...] = ()

    @property
    def pair(self) -> tuple[str, str]:
        """The languages in the order of the result."""
        return (self.languages[1], self.languages[0]) if self.swapped else self.languages

    def pair_among(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Return `pair` in the codes of `languages` (see `parse_source`) if only regions differ: zh
        for zh_cn.
        """
        wanted = [languages[0], *languages[1].split("-")]

        def known(code: str) -> str:
            return (
                code
                if code in wanted
                else next((each for each in wanted if _fits(code, each)), code)
            )

        return known(self.pair[0]), known(self.pair[1])

    @property
    def name(self) -> str:
        """The file, or both files, for messages and reports."""
        return " + ".join(map(stream_name, self.paths))


@dataclass
class ReadCounts:
    """Counts of rows read (including dropped rows), rows dropped, and repairs of the other rows."""

    rows: int = 0
    nul_rows: int = 0  # dropped because of a NUL
    invalid_rows: int = 0  # dropped because they are not UTF-8
    wrong_columns: int = 0
    trailing_returns: int = 0  # lines whose carriage returns at the end were removed
    inner_returns: int = 0  # replaced by spaces
    line_separators: int = 0  # U+2028, U+0085, U+001C, ..., replaced by spaces
    byte_order_marks: int = 0


def parse_source(spec: str, languages: tuple[str, str]) -> TextSource:
    """Parse a text specification ``[LANG-LANG:]FILE``.

    The prefix gives the order of the columns; paraphrases of the first language are allowed,
    ``en-en:FILE``. `languages` are in the order of the output, ``("en", "es")``. For a store of
    several languages, join them with hyphens, ``("en", "fr-es-de")``; then the prefix is required.

    Example:
        >>> from st_paragram import parse_source
        >>> source = parse_source("es-en:pairs.tsv", ("en", "es"))  # the first column is Spanish
    """
    match, others = _SPEC.fullmatch(spec), languages[1].split("-")
    if match is None:
        if len(others) > 1:
            seen = f"{spec}: ambiguous language (one of {', '.join(others)})"
            raise SettingsError(f"{seen}; write for example {languages[0]}-{others[0]}:{spec}")
        return TextSource((spec,), languages)
    first, second, path = match.groups()
    for one, two, swapped in ((first, second, False), (second, first, True)):
        if _fits(one, languages[0]) and (any(_fits(two, other) for other in others) or one == two):
            return TextSource((path,), (first, second), swapped)
    seen = f"columns {first}-{second}, but {'-'.join(languages)} is expected"
    raise SettingsError(f"{spec}: {seen}; correct one of the two")


def _fits(code: str, language: str) -> bool:
    """Compare language codes; a code without a region matches all regions."""
    return language in (code, code.partition("_")[0]) or code == language.partition("_")[0]


def with_columns(
    sources: Sequence[TextSource], columns: Sequence[Sequence[str]]
) -> list[TextSource]:
    """Name the columns of the two languages, once for all sources or once per source.

    Each file of a pair is a table with the column of its language. Without names, JSON lines and
    Parquet have the Hub's column `translation`, and other texts must be plain.
    """
    if not columns:
        return [_without_names(source) for source in sources]
    if len(columns) not in (1, len(sources)) or any(len(names) != 2 for names in columns):
        seen = f"columns {' and '.join(map(' '.join, columns))} for {counted(len(sources), 'text')}"
        raise SettingsError(f"{seen}; give two, one per language, for all texts or per text")
    each = [*columns] * (len(sources) // len(columns))
    return [
        replace(source, columns=tuple(names)) for source, names in zip(sources, each, strict=True)
    ]


def _without_names(source: TextSource) -> TextSource:
    if len(source.paths) == 1:
        return replace(source, columns=translation_columns(source.paths[0], source.languages))
    for path in source.paths:
        check_plain(path)
    return source


def read_pairs(
    source: TextSource, counts: ReadCounts | None = None, drop_invalid: bool | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a source like `read_rows`, without further columns."""
    return ((row[0], row[1]) for row in read_rows(source, counts, drop_invalid))


def read_rows(
    source: TextSource, counts: ReadCounts | None = None, drop_invalid: bool | None = None
) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a source in order, with empty strings for blank rows of files with columns.

    With `drop_invalid`, rows that are not UTF-8 or have a wrong number of columns are dropped and
    counted instead of raising an error. False: the error suggests --drop-invalid. None: it does
    not, since there is no such option.
    """
    counts, expected = counts or ReadCounts(), 2 + source.further_columns
    before, advice = (
        counts.rows,
        ("" if drop_invalid is None else ", or drop such rows (--drop-invalid)"),
    )

    def drop(error: object, read: int = 1, dropped: int = 1) -> None:
        if not drop_invalid:
            raise TextError(f"{error}{advice}")
        counts.rows += read
        counts.wrong_columns += dropped

    with ExitStack() as stack:
        texts = _open(source, stack, drop)
        names = [name for name, _ in texts]
        lines = [
            chain.from_iterable(_blocks(*text, counts, bool(drop_invalid), advice))
            for text in texts
        ]
        rows = (
            _side_by_side(names, *lines)
            if len(lines) == 2
            else (tuple(line.split("\t")) for line in lines[0])
        )
        for row, cells in enumerate(rows, 1):
            counts.rows += 1
            if source.columns and DAMAGED in cells:
                counts.wrong_columns += 1
            elif _NUL in cells:
                counts.nul_rows += 1
            elif _INVALID in cells:
                counts.invalid_rows += 1
            elif len(cells) == expected:
                yield (cells[1], cells[0], *cells[2:]) if source.swapped else cells
            elif not any(map(str.strip, cells)):
                yield ("",) * expected
            else:
                drop(wrong_columns(names[0], row, "\t".join(cells), expected), 0)
    if counts.rows == before:
        raise TextError(f"{source.name}: empty; give a text with at least one row")


def _open(
    source: TextSource, stack: ExitStack, bad_row: Callable[..., None]
) -> list[tuple[str, ByteStream]]:
    """Open one stream of columns, or two streams from a pair of files or zip members, with their
    names.
    """
    path = source.paths[0]
    # rows must keep their places, so a damaged row is dropped later
    if len(source.paths) == 2 and source.columns:

        def damaged(error: TextError) -> None:
            bad_row(error, 0, 0)

        files = zip(source.paths, source.columns, strict=True)
        return [
            (stream_name(path), open_columns(path, [name], stack, damaged, True))
            for path, name in files
        ]
    if source.columns:
        return [(source.name, open_columns(path, source.columns, stack, bad_row))]
    for path in source.paths:
        check_plain(path)
    if len(source.paths) == 2 or not path.lower().endswith(".zip"):
        return [(stream_name(path), streams.open_stream(path, stack)) for path in source.paths]
    with streams.unreadable(path):
        archive = stack.enter_context(zipfile.ZipFile(path))
        members = _members(archive, source.codes or source.languages)
        return [
            (f"{path}:{one_line(member)}", stack.enter_context(archive.open(member)))
            for member in members
        ]


def _members(archive: zipfile.ZipFile, languages: tuple[str, str]) -> list[str]:
    """Find a zip member for each language by its ending (OPUS: `Corpus.en-es.es`), or the only
    member.
    """
    files = [name for name in archive.namelist() if not _of_the_system(name)]
    first, second = (
        [name for name in files if _fits(name.rpartition(".")[2], code)] for code in languages
    )
    if first != second and len(first) == len(second) == 1:
        return [*first, *second]
    if len(files) == 1:
        return files
    seen = f"needs one member each for .{languages[0]} and .{languages[1]}, but its members are"
    advice = "give the codes as in en-zh_cn:FILE, or unpack it"
    raise TextError(f"{archive.filename}: {seen} {one_line(', '.join(files)) or 'none'}; {advice}")


def _of_the_system(member: str) -> bool:
    """Whether a zip member is a folder or a file that macOS or Windows adds."""
    path = PurePosixPath(member)
    is_added = path.name in (".DS_Store", "Thumbs.db", "desktop.ini") or path.name.startswith("._")
    return member.endswith("/") or "__MACOSX" in path.parts or is_added


def _blocks(
    name: str, stream: ByteStream, counts: ReadCounts, drop: bool, advice: str
) -> Iterator[list[str]]:
    """Decode blocks into cleaned lines; lines to drop become `_NUL` or `_INVALID`."""
    row = 1
    for block in streams.read_blocks(name, stream):
        if row == 1 and block.startswith(BYTE_ORDER_MARK):
            counts.byte_order_marks += 1
            block = block[len(BYTE_ORDER_MARK) :]
        try:
            lines = _clean(streams.decode(name, block, row, advice), counts).split("\n")
        except TextError:
            if not drop:
                raise
            decoded = block.decode("utf-8", "surrogateescape").split("\n")
            lines = [
                _INVALID if _ESCAPED.search(line) else _clean(line, counts) for line in decoded
            ]
        row += len(lines)
        yield [_NUL if _NUL in line else line for line in lines] if b"\0" in block else lines


def _side_by_side(
    names: Sequence[str], first: Iterator[str], second: Iterator[str]
) -> Iterator[tuple[str, str]]:
    for row, (one, other) in enumerate(zip_longest(first, second)):
        if one is None or other is None:
            longer = row + 1 + sum(1 for _ in chain(first, second))
            raise unequal(names, (row, longer) if one is None else (longer, row))
        yield one, other


def _clean(text: str, counts: ReadCounts) -> str:
    r"""Remove carriage returns at line ends and replace other line-ending characters by spaces;
    ``\n`` stays.
    """
    if "\r" in text:
        text, found = streams.TRAILING_RETURNS.subn("", text)
        counts.trailing_returns += found
        counts.inner_returns += text.count("\r")
        text = text.replace("\r", " ")
    if any(separator in text for separator in _SEPARATORS):
        text, found = _SEPARATOR.subn(" ", text)
        counts.line_separators += found
    return text


def wrong_columns(name: str, row: int, line: str, expected: int = 2) -> str:
    """Return the error text for a row with a wrong number of columns."""
    seen = f"row {row} has {counted(line.count(chr(9)) + 1, 'column')}, but {expected} are expected"
    return f"{name}: {seen}: {short(line, 60)}; put one tab between columns"


def unequal(names: Sequence[str], rows: Sequence[int]) -> TextError:
    """Return the error for a pair of files with different numbers of rows."""
    seen = " and ".join(
        f"{name} has {counted(count, 'row')}" for name, count in zip(names, rows, strict=True)
    )
    return TextError(f"{seen}; the files of a pair need the same number of rows")
