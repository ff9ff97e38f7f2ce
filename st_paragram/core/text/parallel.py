r"""Parallel text, streamed row by row: files of two columns, Moses pairs of files, and zip archives of either.

Rows end at ``\n`` and nowhere else. What is repaired or dropped on the way is counted in `ReadCounts`, all else is
refused by file and row. The first language of a pair, English by custom, always comes out first.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from st_paragram.core.text import streams
from st_paragram.core.text.streams import BYTE_ORDER_MARK, ByteStream, stream_name
from st_paragram.core.text.tables import BadRow, check_plain, open_columns
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError, TextError, one_line, short

_CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z]{2,4})?"
_SPEC = re.compile(rf"({_CODE})-({_CODE}):(.+)", re.DOTALL)
# Every character besides \n and \r at which str.splitlines would cut.
_SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_NUL, _INVALID = "\0", "\udcff"  # what stands for a line to drop
_ESCAPED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class TextSource:
    """One parallel text: a file of two columns (or a zip archive), or the two files of a Moses pair."""

    paths: tuple[str, ...]
    languages: tuple[str, str]  # of the columns, or of the two files
    swapped: bool = False  # the second column comes out first
    further_columns: int = 0  # such as a score, which follow the two texts of a file of columns
    cap: int | None = None  # the most pairs of this text to store, chosen at random
    codes: tuple[str, str] | None = None  # what members of a zip archive end in, if that is not `languages`
    columns: tuple[str, ...] = ()  # names of the two, in the order of `languages`, if the file is a table

    @property
    def pair(self) -> tuple[str, str]:
        """The languages in the order in which texts come out."""
        return (self.languages[1], self.languages[0]) if self.swapped else self.languages

    def pair_among(self, languages: tuple[str, str]) -> tuple[str, str]:
        """`pair` in the codes of `languages`, see `parse_source`, where they differ by a region alone: zh for zh_cn."""
        wanted = [languages[0], *languages[1].split("-")]

        def known(code: str) -> str:
            return code if code in wanted else next((each for each in wanted if _fits(code, each)), code)

        return known(self.pair[0]), known(self.pair[1])

    @property
    def name(self) -> str:
        """The file, or both files, for messages and reports."""
        return " + ".join(map(stream_name, self.paths))


@dataclass
class ReadCounts:
    """Rows read, dropped ones included; rows dropped; characters replaced in the others; byte order marks removed."""

    rows: int = 0
    nul_rows: int = 0  # have a NUL
    invalid_rows: int = 0  # are not UTF-8
    wrong_columns: int = 0
    trailing_returns: int = 0  # lines that lost the carriage returns at their end
    inner_returns: int = 0  # made spaces, as are the next
    line_separators: int = 0  # U+2028, U+0085, U+001C, ...
    byte_order_marks: int = 0


def parse_source(spec: str, languages: tuple[str, str]) -> TextSource:
    """Read a source specification ``[LANG-LANG:]FILE``.

    The prefix is the order of its columns; paraphrases of the first language may be mixed in, ``en-en:FILE``. The
    `languages` wanted come in the order of the output, ``("en", "es")``; several have dashes between,
    ``("en", "fr-es-de")``, for one store of many languages, where the prefix is needed.

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
    for one, two, swapped in ((first, second, False), (second, first, True)):
        if _fits(one, languages[0]) and (any(_fits(two, other) for other in others) or one == two):
            return TextSource((path,), (first, second), swapped)
    seen = f"columns {first}-{second}, but {'-'.join(languages)} is expected"
    raise SettingsError(f"{spec}: {seen}; correct one of the two")


def _fits(code: str, language: str) -> bool:
    """Compare language codes; a code without a region stands for all its regions."""
    return language in (code, code.partition("_")[0]) or code == language.partition("_")[0]


def with_columns(sources: Sequence[TextSource], columns: Sequence[Sequence[str]]) -> list[TextSource]:
    """Name the columns of the two languages, once for all sources or once for each; none: they must be plain text."""
    if not columns:
        for path in (path for source in sources for path in source.paths):
            check_plain(path)
        return list(sources)
    if len(columns) not in (1, len(sources)) or any(len(names) != 2 for names in columns):
        seen = f"columns {' and '.join(map(' '.join, columns))} for {counted(len(sources), 'text')}"
        raise SettingsError(f"{seen}; give two, one per language, for all texts or for each")
    each = [*columns] * (len(sources) // len(columns))
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

    With `drop_invalid`, rows that are not UTF-8 or have a wrong number of columns are dropped and counted instead of
    being refused; False: the error advises to drop them; None: it does not, since that cannot be asked for.
    """
    counts, expected = counts or ReadCounts(), 2 + source.further_columns
    before, advice = counts.rows, "" if drop_invalid is None else ", or drop such rows (--drop-invalid)"

    def drop(error: object, read: int = 1) -> None:
        if not drop_invalid:
            raise TextError(f"{error}{advice}")
        counts.rows += read
        counts.wrong_columns += 1

    with ExitStack() as stack:
        texts = _open(source, stack, drop)
        names = [name for name, _ in texts]
        lines = [chain.from_iterable(_blocks(*text, counts, bool(drop_invalid), advice)) for text in texts]
        rows = _side_by_side(names, *lines) if len(lines) == 2 else (tuple(line.split("\t")) for line in lines[0])
        for row, cells in enumerate(rows, 1):
            counts.rows += 1
            if _NUL in cells:
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


def _open(source: TextSource, stack: ExitStack, bad_row: BadRow) -> list[tuple[str, ByteStream]]:
    """Open one stream of columns, or two streams, of a pair of files or of zip members, with their names."""
    path = source.paths[0]
    if source.columns:
        return [(source.name, open_columns(path, source.columns, stack, bad_row))]
    if len(source.paths) == 2 or not path.lower().endswith(".zip"):
        return [(stream_name(path), streams.open_stream(path, stack)) for path in source.paths]
    with streams.unreadable(path):
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
    seen = f"needs one member for each of .{languages[0]} and .{languages[1]}, its members are"
    advice = "name its codes as in en-zh_cn:FILE, or unpack it"
    raise TextError(f"{archive.filename}: {seen} {one_line(', '.join(files)) or 'none'}; {advice}")


def _blocks(name: str, stream: ByteStream, counts: ReadCounts, drop: bool, advice: str) -> Iterator[list[str]]:
    """Decode blocks into cleaned lines; one that must be dropped becomes `_NUL` or `_INVALID`."""
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
            lines = [_INVALID if _ESCAPED.search(line) else _clean(line, counts) for line in decoded]
        row += len(lines)
        yield [_NUL if _NUL in line else line for line in lines] if b"\0" in block else lines


def _side_by_side(names: Sequence[str], first: Iterator[str], second: Iterator[str]) -> Iterator[tuple[str, str]]:
    for row, (one, other) in enumerate(zip_longest(first, second)):
        if one is None or other is None:
            longer = row + 1 + sum(1 for _ in chain(first, second))
            raise unequal(names, (row, longer) if one is None else (longer, row))
        yield one, other


def _clean(text: str, counts: ReadCounts) -> str:
    r"""Take carriage returns from line ends and make other line-ending characters spaces; ``\n`` stays."""
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
    """What to say of a row that has another number of columns."""
    seen = f"row {row} has {counted(line.count(chr(9)) + 1, 'column')}, where {expected} are expected"
    return f"{name}: {seen}: {short(line, 60)}; put one tab between columns"


def unequal(names: Sequence[str], rows: Sequence[int]) -> TextError:
    """The error for files of a pair that have these numbers of rows."""
    seen = " and ".join(f"{name} has {counted(count, 'row')}" for name, count in zip(names, rows, strict=True))
    return TextError(f"{seen}; the files of a pair need equal numbers of rows")
