r"""Parallel text, streamed row by row: files of two columns, Moses pairs, zip archives, TMX, XLIFF.

Rows end only at ``\n``. Repaired and dropped rows are counted in `ReadCounts`; other problems are
errors that name the file and the row. The first language of a pair, usually English, always comes
first in the result.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path, PurePosixPath

from st_paragram.core.formatting import counted
from st_paragram.core.languages import check_codes, codes_of_sides
from st_paragram.core.text import streams
from st_paragram.core.text.streams import BYTE_ORDER_MARK, ByteStream, stream_name
from st_paragram.core.text.tables import DAMAGED, check_plain, read_columns, translation_columns
from st_paragram.core.text.translation_files import is_translation_file, read_units
from st_paragram.errors import SettingsError, TextError, one_line, short

_CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z\d]{2,4})?"
_SPEC = re.compile(rf"({_CODE})-({_CODE}):(.+)", re.DOTALL)
# The characters other than \n and \r at which str.splitlines splits.
_SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_ESCAPED = re.compile("[\udc80-\udcff]")
# Placeholders for texts of rows to drop
_NUL = "\0"
_INVALID = "\udcff"


@dataclass(frozen=True)
class TextSource:
    """One parallel text: a file of two columns, a zip archive, or the two files of a Moses pair."""

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
        first, second = self.languages
        return (second, first) if self.swapped else (first, second)

    @property
    def pair_without_regions(self) -> tuple[str, str]:
        """The languages in the order of the result: zh for zh_cn."""
        first, second = self.pair
        return first.partition("_")[0], second.partition("_")[0]

    def pair_among(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Return `pair` in the codes of `languages` if only regions differ: zh for zh_cn.

        Like for `parse_source`, a side of `languages` may have several codes.
        """
        wanted = codes_of_sides(languages)
        first, second = self.pair
        return _code_among(first, wanted), _code_among(second, wanted)

    @property
    def name(self) -> str:
        """The file, or both files, for messages and reports."""
        return " + ".join([stream_name(path) for path in self.paths])


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
    several languages, join those of a side with hyphens, ``("en", "fr-es-de")`` or
    ``("fr-en", "de-fr")``; then the prefix is required.

    Examples:
        >>> from st_paragram import parse_source
        >>> source = parse_source("es-en:pairs.tsv", ("en", "es"))  # the first column is Spanish
    """
    if isinstance(languages, str):
        raise SettingsError(f"languages are {languages!r}; give both, such as ('en', 'es')")
    match = _SPEC.fullmatch(spec)
    if match is None:
        _check_one_pair(spec, languages)
        return TextSource((spec,), languages)
    first, second, path = match.groups()
    if _is_pair_of(languages, first, second):
        return TextSource((path,), (first, second))
    if _is_pair_of(languages, second, first):
        return TextSource((path,), (first, second), swapped=True)
    raise SettingsError(
        f"{spec}: columns {first}-{second}, but {'-'.join(languages)} is expected;"
        f" correct the prefix, or give --pair {first} {second}"
    )


def prefix_of(spec: str) -> tuple[str, str] | None:
    """Return the languages in the prefix of a text specification; None without a prefix."""
    match = _SPEC.fullmatch(spec)
    return (match[1], match[2]) if match and not Path(spec).exists() else None


def source_of(spec: str) -> TextSource:
    """Return the text of a specification whose prefix may name its languages."""
    languages = prefix_of(spec)
    if languages is None:
        if is_translation_file(spec):
            raise SettingsError(
                f"{spec}: a translation file needs its languages; write for example en-es:{spec}"
            )
        return TextSource((spec,), ("first", "second"))
    check_codes(languages)
    return parse_source(spec, languages)


def _check_one_pair(spec: str, languages: tuple[str, str]) -> None:
    """Refuse a text without prefix if a side has several languages."""
    firsts, seconds = [side.split("-") for side in languages]
    if len(firsts) == len(seconds) == 1:
        return
    others = [code for code in seconds if code not in firsts] or seconds
    hint = ""
    if firsts == ["en"] and len(seconds) == 2:
        hint = f" (or give --pair {seconds[0]} {seconds[1]} if no side is English)"
        if "en" in seconds:
            hint = f" (or give --lang {others[0]} if one side is always English)"
    raise SettingsError(
        f"{spec}: ambiguous language (one of {', '.join(dict.fromkeys(firsts[1:] + seconds))});"
        f" write for example {firsts[0]}-{others[0]}:{spec}{hint}"
    )


def _is_pair_of(languages: tuple[str, str], first: str, second: str) -> bool:
    firsts, seconds = [side.split("-") for side in languages]
    if not any(_fits(first, code) for code in firsts):
        return False
    return first == second or any(_fits(second, code) for code in seconds)


def _fits(code: str, language: str) -> bool:
    """Compare language codes; a code without a region matches all regions."""
    return language in (code, code.partition("_")[0]) or code == language.partition("_")[0]


def _code_among(code: str, wanted: Sequence[str]) -> str:
    if code in wanted:
        return code
    for language in wanted:
        if _fits(code, language):
            return language
    return code


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
        listed = " and ".join([" ".join(names) for names in columns])
        raise SettingsError(
            f"columns {listed} for {counted(len(sources), 'text')};"
            " give two, one per language, for all texts or per text"
        )
    named = []
    for number, source in enumerate(sources):
        if is_translation_file(source.paths[0]):
            raise SettingsError(
                f"{source.name}: has languages instead of columns; leave --columns out"
            )
        names = columns[0] if len(columns) == 1 else columns[number]
        if names[0] == names[1] and len(source.paths) == 1:
            raise SettingsError(
                f"{source.name}: column {names[0]} for both languages; name two columns"
            )
        named.append(replace(source, columns=tuple(names)))
    return named


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
    counts = counts or ReadCounts()
    rows_before = counts.rows
    expected = 2 + source.further_columns
    with ExitStack() as stack:
        reader = _Reader(source, counts, drop_invalid=drop_invalid, stack=stack)
        for number, cells in enumerate(reader.rows(), 1):
            counts.rows += 1
            if source.columns and DAMAGED in cells:
                counts.wrong_columns += 1
            elif _NUL in cells:
                counts.nul_rows += 1
            elif _INVALID in cells:
                counts.invalid_rows += 1
            elif len(cells) == expected:
                yield (cells[1], cells[0], *cells[2:]) if source.swapped else cells
            elif not "".join(cells).strip():
                yield ("",) * expected
            else:
                line = "\t".join(cells)
                reader.bad_row(wrong_columns(reader.name, number, line, expected=expected))
                counts.wrong_columns += 1
    if counts.rows == rows_before:
        raise TextError(f"{source.name}: empty; give a text with at least one row")


class _Reader:
    """Reads the rows of a source with cleaned texts.

    Texts of rows to drop are placeholders (`DAMAGED`, `_NUL`, `_INVALID`), so that the two files of
    a pair stay aligned.
    """

    def __init__(
        self, source: TextSource, counts: ReadCounts, drop_invalid: bool | None, stack: ExitStack
    ) -> None:
        self._source = source
        self._counts = counts
        self._drop_invalid = drop_invalid
        self._stack = stack
        self.name = source.name  # of the file or zip member whose rows are read
        self._advice = "" if drop_invalid is None else ", or drop such rows (--drop-invalid)"

    def bad_row(self, error: object) -> None:
        """Raise an error about a row, unless such rows are dropped."""
        if not self._drop_invalid:
            raise TextError(f"{error}{self._advice}")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Open the source, and return an iterator over its rows."""
        if self._source.columns:
            return self._table_rows()
        path = self._source.paths[0]
        is_pair = len(self._source.paths) == 1 and not self._source.further_columns
        if is_pair and is_translation_file(path):
            units = read_units(path, self._source.languages)
            cells = self._stack.enter_context(closing(units))
            return ((self._cell(first), self._cell(second)) for first, second in cells)
        texts = self._open()
        self.name, stream = texts[0]
        lines = self._lines(self.name, stream)
        if len(texts) == 1:
            return (tuple(line.split("\t")) for line in lines)
        second_name, second_stream = texts[1]
        second_lines = self._lines(second_name, second_stream)
        return _side_by_side((self.name, second_name), lines, second_lines)

    def _table_rows(self) -> Iterator[tuple[str, ...]]:
        paths = self._source.paths
        columns = self._source.columns
        if len(paths) == 1:
            return self._cells(paths[0], columns)
        first = (cells[0] for cells in self._cells(paths[0], columns[:1], keep_blank=True))
        second = (cells[0] for cells in self._cells(paths[1], columns[1:], keep_blank=True))
        names = (stream_name(paths[0]), stream_name(paths[1]))
        return _side_by_side(names, first, second)

    def _cells(
        self, path: str, columns: Sequence[str], keep_blank: bool = False
    ) -> Iterator[tuple[str, ...]]:
        rows = read_columns(path, columns, bad_row=self.bad_row, keep_blank=keep_blank)
        for cells in self._stack.enter_context(closing(rows)):
            yield tuple([self._cell(text) for text in cells])

    def _cell(self, text: str) -> str:
        if text.isprintable():  # nearly all are
            return text
        text = _clean(text, self._counts)
        return _NUL if _NUL in text else text

    def _open(self) -> list[tuple[str, ByteStream]]:
        """Open the file of columns, or the two files or zip members of a pair, with their names."""
        paths = self._source.paths
        for path in paths:
            check_plain(path)
        archive_path = paths[0]
        if len(paths) == 2 or not archive_path.lower().endswith(".zip"):
            return [(stream_name(path), streams.open_stream(path, self._stack)) for path in paths]
        texts: list[tuple[str, ByteStream]] = []
        with streams.unreadable(archive_path):
            archive = self._stack.enter_context(zipfile.ZipFile(archive_path))
            for member in _members(archive, self._source.codes or self._source.languages):
                stream = self._stack.enter_context(archive.open(member))
                texts.append((f"{archive_path}:{one_line(member)}", stream))
        return texts

    def _lines(self, name: str, stream: ByteStream) -> Iterator[str]:
        return chain.from_iterable(self._blocks(name, stream))

    def _blocks(self, name: str, stream: ByteStream) -> Iterator[list[str]]:
        """Decode blocks into cleaned lines; lines to drop become `_NUL` or `_INVALID`."""
        row = 1
        for block in streams.read_blocks(name, stream):
            if row == 1 and block.startswith(BYTE_ORDER_MARK):
                self._counts.byte_order_marks += 1
                block = block.removeprefix(BYTE_ORDER_MARK)
            lines = self._decoded_lines(name, block, row)
            row += len(lines)
            if b"\0" in block:
                lines = [_NUL if _NUL in line else line for line in lines]
            yield lines

    def _decoded_lines(self, name: str, block: bytes, row: int) -> list[str]:
        try:
            text = streams.decode(name, block, row, advice=self._advice)
        except TextError:
            if not self._drop_invalid:
                raise
            lines = block.decode("utf-8", "surrogateescape").split("\n")
            for number, line in enumerate(lines):
                lines[number] = _INVALID if _ESCAPED.search(line) else _clean(line, self._counts)
            return lines
        return _clean(text, self._counts).split("\n")


def _members(archive: zipfile.ZipFile, languages: tuple[str, str]) -> list[str]:
    """Find a zip member for each language by its ending (OPUS: `Corpus.en-es.es`), or the only
    member.
    """
    files = [name for name in archive.namelist() if not _of_the_system(name)]
    first = [name for name in files if _fits(name.rpartition(".")[2], languages[0])]
    second = [name for name in files if _fits(name.rpartition(".")[2], languages[1])]
    if first != second and len(first) == len(second) == 1:
        return [*first, *second]
    if len(files) == 1:
        return files
    raise TextError(
        f"{archive.filename}: needs one member each for .{languages[0]} and .{languages[1]}, but"
        f" its members are {one_line(', '.join(files)) or 'none'};"
        " give the codes as in en-zh_cn:FILE, or unpack it"
    )


def _of_the_system(member: str) -> bool:
    """Whether a zip member is a folder or a file that macOS or Windows adds."""
    path = PurePosixPath(member)
    is_added = path.name in (".DS_Store", "Thumbs.db", "desktop.ini") or path.name.startswith("._")
    return member.endswith("/") or "__MACOSX" in path.parts or is_added


def _side_by_side(
    names: tuple[str, str], first: Iterator[str], second: Iterator[str]
) -> Iterator[tuple[str, str]]:
    for rows, (one, other) in enumerate(zip_longest(first, second)):
        if one is None or other is None:
            longer = rows + 1 + sum(1 for _ in chain(first, second))
            raise unequal(names, (rows, longer) if one is None else (longer, rows))
        yield one, other


def _clean(text: str, counts: ReadCounts) -> str:
    r"""Remove carriage returns at line ends and replace other line-ending characters by spaces;
    ``\n`` stays.
    """
    if "\r" in text:
        text, trailing = streams.TRAILING_RETURNS.subn("", text)
        counts.trailing_returns += trailing
        counts.inner_returns += text.count("\r")
        text = text.replace("\r", " ")
    if any(separator in text for separator in _SEPARATORS):
        text, separators = _SEPARATOR.subn(" ", text)
        counts.line_separators += separators
    return text


def wrong_columns(name: str, row: int, line: str, expected: int = 2) -> str:
    """Return the error text for a row with a wrong number of columns."""
    columns = counted(line.count("\t") + 1, "column")
    return (
        f"{name}: row {row} has {columns}, but {expected} are expected: {short(line, 60)};"
        " put one tab between columns"
    )


def unequal(names: Sequence[str], rows: Sequence[int]) -> TextError:
    """Return the error for a pair of files with different numbers of rows."""
    return TextError(
        f"{names[0]} has {counted(rows[0], 'row')} and {names[1]} has {counted(rows[1], 'row')};"
        " the files of a pair need the same number of rows"
    )
