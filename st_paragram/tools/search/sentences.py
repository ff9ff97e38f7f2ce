"""The distinct sentences of a text on disk: each is there once, and those without content are left out.

A folder holds `text`, all lines one after another with single spaces, and, mapped when read, `starts.npy` and
`ends.npy` (int64 (n,), bytes of `text`) and `lines.npy` (int64 (n,), the line of the first occurrence, from 0) of the
n distinct sentences in the order of their first occurrence. With ids, `ids`, `id_starts.npy` and `id_ends.npy` too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic
from st_paragram.core.text.tables import read_texts
from st_paragram.errors import DAMAGED, MiningError, one_line
from st_paragram.tools.search.fields import Column, FieldBuilder, Value, common
from st_paragram.tools.stages.metadata import read_metadata, write_metadata

_FEWEST_LETTERS = 2
_Line = tuple[int, str, str, "Mapping[str, Value | None] | None"]  # number, id, sentence, fields


@dataclass
class SentenceCounts:
    """What became of the lines of a text: `lines` is `sentences` plus all others.

    Attributes:
        lines: Read.
        blank: Of white space alone.
        near_empty: With fewer than two letters or digits.
        repeated: That were there before; the first is kept.
        boilerplate: Of sentences that occur too often, if there is a limit.
        sentences: Distinct ones that are left.
        most_repeated: How often the most frequent sentence occurs.
    """

    lines: int = 0
    blank: int = 0
    near_empty: int = 0
    repeated: int = 0
    boilerplate: int = 0
    sentences: int = 0
    most_repeated: int = 0


class Sentences:
    """Distinct sentences, read through memory maps."""

    def __init__(self, folder: Path) -> None:
        """Open a folder that `write_sentences` has made.

        Raises:
            StoreError: It is not complete.
        """
        self.folder = folder
        metadata = read_metadata(folder / "text")
        self.counts = SentenceCounts(**{name: metadata[name] for name in asdict(SentenceCounts())})
        self.has_ids: bool = metadata["has_ids"]

    def __len__(self) -> int:
        """Number of distinct sentences."""
        return self.counts.sentences

    def __getstate__(self) -> dict[str, Any]:
        """Leave the maps behind: every process opens its own."""
        return {"folder": self.folder, "counts": self.counts, "has_ids": self.has_ids}

    def texts(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Sentences by their rows."""
        return self._take("text", "starts", "ends", rows)

    def ids(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Ids of sentences, of their first occurrence; without ids the numbers of their lines, from 1."""
        if not self.has_ids:
            return list(map(str, (self._array("lines")[np.asarray(rows, dtype=np.int64)] + 1).tolist()))
        return self._take("ids", "id_starts", "id_ends", rows)

    def open(self) -> None:
        """Map all files now: they can be read on when they are removed."""
        for name in ("starts", "ends", "lines"):
            self._array(name)
        self._text("text")

    @property
    def lines(self) -> NDArray[np.int64]:
        """Lines of the sentences, from 0: int64 (n,)."""
        return self._array("lines")

    @property
    def cuts(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Bytes of all lines one after another, and where sentences begin and end there: int64 (n,) twice."""
        return np.frombuffer(self._text("text"), np.uint8), self._array("starts"), self._array("ends")

    def encoded(self, rows: Sequence[int] | NDArray[np.int64]) -> list[bytes]:
        """Sentences by their rows, in UTF-8."""
        return self._bytes("text", "starts", "ends", rows)

    def _take(self, name: str, starts: str, ends: str, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        return [each.decode("utf-8") for each in self._bytes(name, starts, ends, rows)]

    def _bytes(self, name: str, starts: str, ends: str, rows: Sequence[int] | NDArray[np.int64]) -> list[bytes]:
        rows, text = np.asarray(rows, dtype=np.int64), self._text(name)
        cuts = zip(self._array(starts)[rows].tolist(), self._array(ends)[rows].tolist(), strict=True)
        return [text[begin:end] for begin, end in cuts]

    @cached_property
    def _maps(self) -> dict[str, Any]:
        """The files that were opened, by their names."""
        return {}

    def _text(self, name: str) -> mmap:
        if name not in self._maps:
            with (self.folder / name).open("rb") as handle:
                self._maps[name] = mmap(handle.fileno(), 0, access=ACCESS_READ)
        return cast("mmap", self._maps[name])

    def _array(self, name: str) -> NDArray[np.int64]:
        if name not in self._maps:
            self._maps[name] = _mapped(self.folder / f"{name}.npy")
        return cast("NDArray[np.int64]", self._maps[name])


def write_sentences(
    path: str, folder: Path, with_ids: bool = False, most_repeats: int | None = None, column: str | None = None
) -> SentenceCounts:
    """Find the distinct sentences of a text.

    Memory: 32 bytes per line.

    Args:
        path: The text, one sentence per line; with ids, `id TAB sentence` (as in BUCC's files).
        folder: Filled.
        with_ids: Lines begin with an id.
        most_repeats: Leave out sentences that occur more often: menus, headers and the like.
        column: The name of the column that has the sentences, if the text is a table; see `tables.read_columns`.

    Raises:
        TextError: The text cannot be read, or a line is not UTF-8.
        MiningError: The text has no sentence, or a line has no id where it should.
    """
    return _write(_numbered(path, with_ids, column), path, folder, most_repeats, with_ids)[0]


def write_tagged_sentences(
    rows: Iterable[tuple[str, Mapping[str, Value | None] | None]],
    name: str,
    folder: Path,
    fields: FieldBuilder,
    most_repeats: int | None = None,
) -> tuple[SentenceCounts, dict[str, Column]]:
    """The same for sentences with fields. Of a repeated one, later values replace earlier ones.

    Args:
        rows: Sentences, and their fields.
        name: Of the text, for messages.
        folder: Filled with the sentences; fields are returned.
        fields: Collects the fields.
        most_repeats: As of `write_sentences`.

    Raises:
        MiningError: There is no sentence.
        SettingsError: Fields cannot be kept.
    """
    lines = ((number, "", " ".join(text.split()), values) for number, (text, values) in enumerate(rows))
    return _write(lines, name, folder, most_repeats, fields=fields)


def _write(
    lines: Iterable[_Line],
    path: str,
    folder: Path,
    most_repeats: int | None,
    with_ids: bool = False,
    fields: FieldBuilder | None = None,
) -> tuple[SentenceCounts, dict[str, Column]]:
    counts = SentenceCounts()
    kept = _write_lines(lines, folder, with_ids, counts, fields)
    hashes = kept.hashes()
    first = _first_occurrences(hashes, counts, most_repeats)
    if not len(first):
        raise MiningError(f"{path}: no sentences in {counts.lines} lines; give a text with one sentence per line")
    for name, array in kept.arrays(with_ids).items():
        with atomic(folder / f"{name}.npy") as handle:
            np.save(handle, array[first])
    write_metadata(folder / "text", asdict(counts) | {"has_ids": with_ids})
    columns = {} if fields is None else _latest(fields.columns(), hashes, first)
    return counts, columns


def _latest(columns: Mapping[str, Column], hashes: NDArray[np.uint64], first: NDArray[np.int64]) -> dict[str, Column]:
    """Of each distinct sentence the last value that a line gave it."""
    if not columns:
        return {}
    order = np.argsort(hashes[first])
    place = np.minimum(np.searchsorted(hashes[first], hashes, sorter=order), len(first) - 1)
    rows = np.where(hashes[first[order[place]]] == hashes, order[place], -1)  # -1: it occurs too often
    found = {}
    for name, column in columns.items():
        given = np.flatnonzero((column.codes > 0) & (rows >= 0))
        codes = np.zeros(len(first), column.codes.dtype)
        codes[rows[given]] = column.codes[given]  # of equal rows the last one stays
        if codes.any():
            found[name] = common([Column(column.kind, column.values, codes)])[0]
    return found


def copy_sentences(
    sources: Sequence[Sentences],
    which: NDArray[np.int64],
    rows: NDArray[np.int64],
    lines: NDArray[np.int64],
    folder: Path,
    counts: SentenceCounts,
) -> None:
    """Write sentences of several folders into one.

    Args:
        sources: Of the sentences.
        which: Source of each sentence, int64 (n,).
        rows: Row of each within its source, int64 (n,).
        lines: Line of each, from 0, int64 (n,).
        folder: Filled.
        counts: What became of the lines of their texts.
    """
    lengths = np.zeros(len(rows), np.int64)
    with atomic(folder / "text") as text:
        for begin in range(0, len(rows), 1 << 16):
            block = slice(begin, begin + (1 << 16))
            sentences = np.empty(len(rows[block]), object)
            for number in np.unique(which[block]):
                own = which[block] == number
                sentences[own] = sources[number].encoded(rows[block][own])
            lengths[block] = [len(each) for each in sentences]
            text.write(b"".join(sentences))
    ends = np.cumsum(lengths)
    for name, array in (("starts", ends - lengths), ("ends", ends), ("lines", lines)):
        with atomic(folder / f"{name}.npy") as handle:
            np.save(handle, array)
    write_metadata(folder / "text", asdict(replace(counts, sentences=len(rows))) | {"has_ids": False})


def _write_lines(
    lines: Iterable[_Line], folder: Path, with_ids: bool, counts: SentenceCounts, fields: FieldBuilder | None
) -> _Kept:
    """Write the lines that say something, one after another, and their ids; all lines are counted."""
    kept = _Kept()
    with ExitStack() as stack:
        text = stack.enter_context(atomic(folder / "text"))
        ids = stack.enter_context(atomic(folder / "ids")) if with_ids else None
        for block in _blocks(lines, 1 << 16):
            chosen = [each for each in block if _says_something(each[2], counts)]
            counts.lines += len(block)
            sentences = [line.encode() for _, _, line, _ in chosen]
            keys = [key.encode() for _, key, _, _ in chosen]
            kept.add([number for number, _, _, _ in chosen], sentences, keys)
            text.write(b"".join(sentences))
            if ids is not None:
                ids.write(b"".join(keys))
            if fields is not None:
                for number, _, _, values in chosen:
                    fields.add(values or {}, number + 1)
    return kept


class _Kept:
    """Of the lines that were written: their numbers, hashes, and lengths in bytes. 32 bytes per line."""

    def __init__(self) -> None:
        self._numbers, self._hashes = list[NDArray[np.int64]](), list[NDArray[np.uint64]]()
        self._lengths, self._id_lengths = list[NDArray[np.int64]](), list[NDArray[np.int64]]()

    def add(self, numbers: Sequence[int], sentences: Sequence[bytes], keys: Sequence[bytes]) -> None:
        digests = b"".join(hashlib.blake2b(line, digest_size=8).digest() for line in sentences)
        self._hashes.append(np.frombuffer(digests, dtype=np.uint64))
        self._numbers.append(np.array(numbers, dtype=np.int64))
        self._lengths.append(np.fromiter(map(len, sentences), np.int64, len(sentences)))
        self._id_lengths.append(np.fromiter(map(len, keys), np.int64, len(keys)))

    def hashes(self) -> NDArray[np.uint64]:
        """Of the sentences, uint64 (c,)."""
        return np.concatenate([np.zeros(0, np.uint64), *self._hashes])

    def arrays(self, with_ids: bool) -> dict[str, NDArray[np.int64]]:
        """What a folder keeps of every line, int64 (c,) each, by name of the file."""
        arrays = {"lines": np.concatenate(self._numbers)}
        for name, parts in (("", self._lengths), ("id_", self._id_lengths))[: 1 + with_ids]:
            lengths = np.concatenate(parts)
            ends = np.cumsum(lengths)
            arrays |= {f"{name}starts": ends - lengths, f"{name}ends": ends}
        return arrays


def _numbered(path: str, with_ids: bool, column: str | None) -> Iterator[_Line]:
    """Number of the line, id, sentence with single spaces, no fields."""
    for number, line in enumerate(read_texts(path, column)):
        key, tab, sentence = line.partition("\t") if with_ids else ("", "\t", line)
        if not tab and line.strip():
            raise MiningError(f"{path}: line {number + 1} has no tab; with ids, lines are `id TAB sentence`")
        yield number, key, " ".join(sentence.split()), None


def _blocks(lines: Iterable[_Line], count: int) -> Iterator[list[_Line]]:
    block = []
    for line in lines:
        block.append(line)
        if len(block) == count:
            yield block
            block = []
    if block:
        yield block


def _says_something(line: str, counts: SentenceCounts) -> bool:
    if not line:
        counts.blank += 1
        return False
    if len(line) >= _FEWEST_LETTERS and line[:_FEWEST_LETTERS].isalnum():  # nearly all of them
        return True
    letters = 0
    for character in line:
        letters += character.isalnum()
        if letters == _FEWEST_LETTERS:
            return True
    counts.near_empty += 1
    return False


def _first_occurrences(
    hashes: NDArray[np.uint64], counts: SentenceCounts, most_repeats: int | None
) -> NDArray[np.int64]:
    """Positions of the distinct sentences, in order.

    Hashes of 64 bits distinguish them: of a billion sentences, two have the same one in about one text out of 40.
    """
    _, first, times = np.unique(hashes, return_index=True, return_counts=True)
    counts.most_repeated = int(times.max(initial=0))
    usable = times <= most_repeats if most_repeats else np.ones(len(times), dtype=bool)
    counts.boilerplate = int(times[~usable].sum())
    counts.repeated = int((times[usable] - 1).sum())
    counts.sentences = int(usable.sum())
    return np.sort(first[usable])


def _mapped(path: Path) -> NDArray[np.int64]:
    try:
        return np.load(path, mmap_mode="r")
    except DAMAGED as error:
        raise MiningError(f"{path}: damaged ({one_line(error)}); remove its folder and start again") from error
