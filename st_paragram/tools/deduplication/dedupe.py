"""Removal of duplicates from a text or a parallel text, in memory.

Remaining lines are written unchanged. A row is removed only if it is a duplicate of a row that is
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.arrays import Integers, Mask, Vectors
from st_paragram.core.formatting import counted
from st_paragram.core.text.parallel import unequal, wrong_columns
from st_paragram.core.text.streams import (
    BYTE_ORDER_MARK,
    decode,
    open_stream,
    read_blocks,
    stream_name,
)
from st_paragram.core.text.tables import check_plain, read_columns
from st_paragram.errors import TextError
from st_paragram.tools.deduplication.keys import Form, Hashes, form, keys
from st_paragram.tools.deduplication.settings import DeduplicationSettings
from st_paragram.tools.deduplication.tokens import has_points, is_unspaced

#: Reasons why a text is a duplicate.
REASONS = ("exact", "normalized", "minhash")
_EXACT, _NORMALIZED, _MINHASH = range(3)
_COMPARED = 200  # maximum rows to compare per key, which bounds the work for very common keys
_HELD = 1 << 14  # texts whose n-grams are cached

Links = NDArray[np.int32]
View = tuple[int, ...]  # sides of a pair


class Match(NamedTuple):
    """Why a text is a duplicate of another."""

    reason: int  # index in `REASONS`
    similarity: float


@dataclass(frozen=True)
class Deduplicated:
    """The rows of a text, and which of them are duplicates."""

    files: list[list[bytes]]  # the lines of each file, unchanged
    columns: list[list[str]]  # the texts of n rows
    # (n,): the row of which a removed row is a duplicate; -1 for kept rows
    kept_row: NDArray[np.int32]
    reasons: NDArray[np.int8]  # (n, sides): index in `REASONS`; -1 for a side that was not needed
    similarities: Vectors  # (n, sides)

    @property
    def kept(self) -> Mask:
        """Which rows are kept, bool (n,)."""
        return self.kept_row < 0

    def counts(self) -> dict[str, int]:
        """Count removed rows by reason; of two sides, the reason later in `REASONS` counts."""
        numbers = np.bincount(self.reasons.max(axis=1)[~self.kept], minlength=len(REASONS))
        return dict(zip(REASONS, numbers.tolist(), strict=True))

    def why(self, row: int) -> str:
        """Return why a row was removed, such as "first exact, second minhash 0.87"."""
        parts = []
        for side, reason in enumerate(self.reasons[row].tolist()):
            if reason < 0:
                continue
            part = REASONS[reason]
            if len(self.columns) == 2:
                part = f"{('first', 'second')[side]} {part}"
            if reason == _MINHASH:
                similarity = float(self.similarities[row, side])
                part += f" {int(similarity * 100 + 1e-4) / 100:.2f}"
            parts.append(part)
        return ", ".join(parts)

    def write(self, outputs: Sequence[IO[bytes]], removed: IO[bytes] | None = None) -> None:
        """Write the kept rows to one output for each file that was read.

        The removed rows go to `removed` as `line TAB kept line TAB reason TAB text`, with line
        numbers from 1.
        """
        kept = self.kept.tolist()
        for lines, output in zip(self.files, outputs, strict=True):
            output.writelines(line + b"\n" for line in compress(lines, kept))
        if removed:
            for row in np.flatnonzero(~self.kept).tolist():
                text = "\t".join(column[row] for column in self.columns)
                removed.write(
                    f"{row + 1}\t{self.kept_row[row] + 1}\t{self.why(row)}\t{text}\n".encode()
                )

    def summary(self) -> str:
        """Return how many rows are kept, and how many are removed for each reason."""
        thing = "line" if len(self.columns) == 1 else "pair"
        parts = [f"{count:,} {reason}" for reason, count in self.counts().items() if count]
        return (
            f"{self.kept.sum():,} of {counted(len(self.kept), thing)} kept; removed:"
            f" {', '.join(parts) or 'none'}"
        )


def deduplicate(
    paths: Sequence[str],
    columns: int,
    settings: DeduplicationSettings | None = None,
    names: Sequence[str] = (),
) -> Deduplicated:
    """Find the duplicates in a text or a parallel text, in memory.

    Args:
        paths: One file, or the two files of a Moses pair; plain or compressed, or `-`.
        columns: Number of texts per row, 1 or 2.
        settings: Settings of deduplication.
        names: Names of the text columns of a table, as many as `columns`; none for plain text.
    """
    settings = settings or DeduplicationSettings()
    files = [_lines(path, names) for path in paths]
    counts = [len(lines) for lines in files]
    if len(set(counts)) > 1:
        raise unequal([stream_name(path) for path in paths], counts)
    texts = [_texts(lines) for lines in files]
    if columns > len(files):
        texts = _sides(stream_name(paths[0]), texts[0])
    order = np.arange(counts[0])
    if settings.keep == "longest":
        sizes = np.sum([_sizes(lines) for lines in files], axis=0)
        order = np.argsort(-sizes, kind="stable")
    kept_row, reasons, similarities = _decide(texts, settings, order)
    return Deduplicated(files, texts, kept_row=kept_row, reasons=reasons, similarities=similarities)


def _texts(lines: Sequence[bytes]) -> list[str]:
    texts = [line.decode().rstrip("\r") for line in lines]
    texts[0] = texts[0].removeprefix("\ufeff")
    return texts


def _sides(name: str, rows: Sequence[str]) -> list[list[str]]:
    """Return the two sides of tab-separated pairs; a blank line has two empty texts."""
    first = []
    second = []
    for number, row in enumerate(rows, 1):
        if row.count("\t") != 1 and row.strip():
            raise TextError(wrong_columns(name, number, row))
        one, _, two = row.partition("\t")
        first.append(one)
        second.append(two)
    return [first, second]


def _sizes(lines: Sequence[bytes]) -> Integers:
    return np.array([len(line) for line in lines], np.int64)


def _lines(path: str, names: Sequence[str]) -> list[bytes]:
    """Read the lines of a UTF-8 file."""
    name = stream_name(path)
    lines: list[bytes] = []
    if names:
        lines = ["\t".join(row).encode() for row in read_columns(path, names)]
    else:
        check_plain(path)
        bar = tqdm(desc="read", unit="B", unit_scale=True, disable=None, leave=False)
        with ExitStack() as stack, bar:
            for block in read_blocks(name, open_stream(path, stack)):
                text = block if lines else block.removeprefix(BYTE_ORDER_MARK)
                decode(name, text, len(lines) + 1)
                lines += block.split(b"\n")
                bar.update(len(block))
    if not lines:
        raise TextError(f"{name}: empty; give a text with at least one line")
    return lines


def _decide(
    columns: Sequence[Sequence[str]], settings: DeduplicationSettings, order: Integers
) -> tuple[NDArray[np.int32], NDArray[np.int8], Vectors]:
    """Decide in a given order, int64 (n,), which of n rows are kept."""
    count = len(columns[0])
    views = settings.views(len(columns))
    kept_row = np.full(count, -1, np.int32)
    reasons = np.full((count, len(columns)), -1, np.int8)
    similarities = np.zeros((count, len(columns)), np.float32)
    kept = bytearray(b"\1") * count
    compare = _comparison(columns, settings)
    keys_of_views, forms, lengths = keys(columns, settings)
    links_of_views = []
    is_linked = np.zeros(count, bool)
    for view_keys in keys_of_views:
        links = [_link(column, order) for column in view_keys]
        links_of_views.append(links)
        for link in links:
            is_linked |= link >= 0
    del keys_of_views
    may_match = _quick_comparison(forms, lengths)
    rows = order[is_linked[order]].tolist()
    for row in tqdm(rows, desc="compare", unit=" rows", unit_scale=True, disable=None, leave=False):
        for view, candidate in _candidates(row, views, links_of_views, kept):
            if not all(may_match(row, candidate, side) for side in view):
                continue
            results = [compare(row, candidate, side) for side in view]
            matches = [match for match in results if match is not None]
            if len(matches) == len(view):
                kept[row] = 0
                kept_row[row] = candidate
                reasons[row, list(view)] = [match.reason for match in matches]
                similarities[row, list(view)] = [match.similarity for match in matches]
                break
    return kept_row, reasons, similarities


def _quick_comparison(
    forms: Sequence[Hashes], lengths: Sequence[NDArray[np.int32]]
) -> Callable[[int, int, int], bool]:
    """Return a function that excludes one side of two rows.

    Different texts of the same length are not duplicates.
    """
    keys_of = [form.data for form in forms]
    lengths_of = [length.data for length in lengths]

    def may_match(row: int, candidate: int, side: int) -> bool:
        same_key = keys_of[side][row] == keys_of[side][candidate]
        return same_key or lengths_of[side][row] != lengths_of[side][candidate]

    return may_match


def _link(keys: Hashes, order: Integers) -> Links:
    """Return for each row the previous row in an order with the same key, (n,); -1 for none."""
    rows = order[np.argsort(keys[order], kind="stable")]
    same = (keys[rows[1:]] == keys[rows[:-1]]) & (keys[rows[1:]] > 0)
    links = np.full(len(keys), -1, np.int32)
    links[rows[1:][same]] = rows[:-1][same]
    return links


def _candidates(
    row: int, views: Sequence[View], links_of_views: Sequence[Sequence[Links]], kept: bytearray
) -> Iterator[tuple[View, int]]:
    """Yield views and the kept rows that share a key of a view with a row, each once."""
    for view, links in zip(views, links_of_views, strict=True):
        earlier = set[int]()
        for link in links:
            candidate = int(link[row])
            while candidate >= 0 and not kept[candidate]:
                candidate = int(link[candidate])
            link[row] = candidate  # so that no removed row is visited twice
            for _ in range(_COMPARED):
                if candidate < 0:
                    break
                if candidate not in earlier:
                    earlier.add(candidate)
                    yield view, candidate
                candidate = int(link[candidate])


def _comparison(
    columns: Sequence[Sequence[str]], settings: DeduplicationSettings
) -> Callable[[int, int, int], Match | None]:
    """Return a function that compares one side of two rows; it returns None if they differ."""
    has_exact = "exact" in settings.methods
    has_minhash = "minhash" in settings.methods

    @lru_cache(_HELD)
    def form_of(row: int, side: int, points: bool) -> Form:
        return form(columns[side][row], settings, points)

    def compare(row: int, candidate: int, side: int) -> Match | None:
        text = columns[side][row]
        candidate_text = columns[side][candidate]
        if has_exact and text == candidate_text:
            return Match(_EXACT, 1.0)
        # a text without points has the same words
        points = has_points(text) and has_points(candidate_text)
        first = form_of(row, side, points)
        second = form_of(candidate, side, points)
        if has_exact and settings.normalize and first.key == second.key:
            return Match(_NORMALIZED, 1.0)
        if not has_minhash or first.essential != second.essential:
            return None
        shared = len(first.ngrams & second.ngrams)
        union = len(first.ngrams) + len(second.ngrams) - shared
        is_near = shared and shared >= settings.threshold * union
        if is_near and _adds_words(first.parts, second.parts):
            return Match(_MINHASH, shared / union)
        return None

    return compare


def _adds_words(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether one of two texts has all parts of the other in order, and perhaps more words.

    A single character of a script without spaces is rather a part of a word, so that the two words
    differ.
    """
    shorter, longer = sorted((first, second), key=len)
    place = 0
    for part in shorter:
        try:
            match = longer.index(part, place)
        except ValueError:
            return False
        if match == place + 1 and is_unspaced(longer[place]):
            return False
        place = match + 1
    return place != len(longer) - 1 or not is_unspaced(longer[place])
