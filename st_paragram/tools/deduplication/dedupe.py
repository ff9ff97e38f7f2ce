"""Removal of duplicates from a text or a parallel text, in memory; remaining lines are written
unchanged.

A row is removed only if it is a duplicate of a row that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import IO

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

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
from st_paragram.tools.deduplication.keys import Hashes, form, keys
from st_paragram.tools.deduplication.settings import DeduplicationSettings
from st_paragram.tools.deduplication.tokens import has_points, is_unspaced

#: Reasons why a text is a duplicate.
REASONS = ("exact", "normalized", "minhash")
_EXACT, _NORMALIZED, _MINHASH = range(3)
_COMPARED = 200  # maximum rows to compare per key, which bounds the work for very common keys
_HELD = 1 << 14  # texts whose n-grams are cached

Links = NDArray[np.int32]
Found = tuple[int, float]  # a reason and the similarity


@dataclass(frozen=True)
class Deduplicated:
    """The rows of a text, and which of them are duplicates."""

    files: list[list[bytes]]  # the lines of each file, unchanged
    columns: list[list[str]]  # the texts of n rows
    # (n,): the row of which a removed row is a duplicate; -1 for kept rows
    kept_row: NDArray[np.int32]
    reasons: NDArray[np.int8]  # (n, sides): index in `REASONS`; -1 for a side that was not needed
    similarities: NDArray[np.float32]  # (n, sides)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows are kept, bool (n,)."""
        return self.kept_row < 0

    def counts(self) -> dict[str, int]:
        """Count removed rows by reason; of two sides, the reason later in `REASONS` counts."""
        numbers = np.bincount(self.reasons.max(axis=1)[~self.kept], minlength=len(REASONS))
        return dict(zip(REASONS, numbers.tolist(), strict=True))

    def why(self, row: int) -> str:
        """Return why a row was removed: "first exact, second minhash 0.87"; a single side needs no
        name.
        """
        sides = ("first ", "second ") if len(self.columns) == 2 else ("",)
        parts = zip(sides, self.reasons[row].tolist(), self.similarities[row].tolist(), strict=True)
        return ", ".join(
            f"{side}{REASONS[reason]}"
            + f" {int(value * 100 + 1e-4) / 100:.2f}" * (reason == _MINHASH)
            for side, reason, value in parts
            if reason >= 0
        )

    def write(self, outputs: Sequence[IO[bytes]], removed: IO[bytes] | None = None) -> None:
        """Write the kept rows to one output for each file that was read.

        The removed rows go to `removed` as `line TAB kept line TAB reason TAB text`, with line
        numbers from 1.
        """
        kept = self.kept.tolist()
        for lines, output in zip(self.files, outputs, strict=True):
            output.writelines(
                line + b"\n" for line, stays in zip(lines, kept, strict=True) if stays
            )
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
    if len({len(lines) for lines in files}) > 1:
        raise unequal(list(map(stream_name, paths)), list(map(len, files)))
    texts = [[line.decode().rstrip("\r") for line in lines] for lines in files]
    for column in texts:
        column[0] = column[0].removeprefix("\ufeff")
    if columns > len(files):
        for number, line in enumerate(texts[0], 1):
            if line.count("\t") != 1 and line.strip():
                raise TextError(wrong_columns(stream_name(paths[0]), number, line))
        pairs = [line.partition("\t") for line in texts[0]]  # a blank line has two empty texts
        texts = [[pair[0] for pair in pairs], [pair[2] for pair in pairs]]
    sizes = np.sum([np.fromiter(map(len, lines), np.int64) for lines in files], axis=0)
    order = (
        np.argsort(-sizes, kind="stable") if settings.keep == "longest" else np.arange(len(sizes))
    )
    return Deduplicated(files, texts, *_decide(texts, settings, order))


def _lines(path: str, names: Sequence[str]) -> list[bytes]:
    """Read the lines of a UTF-8 file."""
    name, lines = stream_name(path), list[bytes]()
    with ExitStack() as stack:
        bar = stack.enter_context(
            tqdm(desc="read", unit="B", unit_scale=True, disable=None, leave=False)
        )
        if names:
            lines = ["\t".join(row).encode() for row in read_columns(path, names)]
        else:
            check_plain(path)
            for block in read_blocks(name, open_stream(path, stack)):
                text = block if lines else block.removeprefix(BYTE_ORDER_MARK)
                decode(name, text, len(lines) + 1)
                lines += block.split(b"\n")
                bar.update(len(block))
    if not lines:
        raise TextError(f"{name}: empty; give a text with at least one line")
    return lines


def _decide(
    columns: Sequence[Sequence[str]], settings: DeduplicationSettings, order: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.float32]]:
    """Decide in a given order, int64 (n,), which of n rows are kept; return the arrays of
    `Deduplicated`.
    """
    count, views = len(columns[0]), settings.views(len(columns))
    kept_row = np.full(count, -1, np.int32)
    reasons = np.full((count, len(columns)), -1, np.int8)
    similarities = np.zeros((count, len(columns)), np.float32)
    kept, compare = bytearray(b"\1") * count, _comparison(columns, settings)
    by_view, forms, lengths = keys(columns, settings)
    links = [[_link(column, order) for column in of_view] for of_view in by_view]
    del by_view
    may_match = _quick_comparison(forms, lengths)
    linked = np.logical_or.reduce([each >= 0 for of_view in links for each in of_view])
    rows = order[linked[order]].tolist()
    for row in tqdm(rows, desc="compare", unit=" rows", unit_scale=True, disable=None, leave=False):
        pairs = (
            (view, other)
            for view, of in zip(views, links, strict=True)
            for other in _candidates(row, of, kept)
        )
        for view, other in pairs:
            if not all(may_match(row, other, side) for side in view):
                continue
            found = [compare(row, other, side) for side in view]
            if all(found):
                kept[row], kept_row[row] = 0, other
                reasons[row, list(view)], similarities[row, list(view)] = zip(*found, strict=True)  # type: ignore[arg-type]
                break
    return kept_row, reasons, similarities


def _quick_comparison(
    forms: Sequence[Hashes], lengths: Sequence[NDArray[np.int32]]
) -> Callable[[int, int, int], bool]:
    """Make a function that excludes one side of two rows: different texts of the same length are
    not duplicates.
    """
    keys_of = [form.data for form in forms]
    lengths_of = [length.data for length in lengths]

    def may_match(row: int, other: int, side: int) -> bool:
        same_key = keys_of[side][row] == keys_of[side][other]
        return same_key or lengths_of[side][row] != lengths_of[side][other]

    return may_match


def _link(keys: Hashes, order: NDArray[np.int64]) -> Links:
    """Return for each row the previous row, in a given order, with the same key, int32 (n,); -1 for
    none.
    """
    rows = order[np.argsort(keys[order], kind="stable")]
    same = (keys[rows[1:]] == keys[rows[:-1]]) & (keys[rows[1:]] > 0)
    links = np.full(len(keys), -1, np.int32)
    links[rows[1:][same]] = rows[:-1][same]
    return links


def _candidates(row: int, links: Sequence[Links], kept: bytearray) -> Iterator[int]:
    """Yield the kept rows that share a key with a row, each once."""
    seen = set[int]()
    for link in links:
        first = other = int(link[row])
        while other >= 0 and not kept[other]:
            other = int(link[other])
        if other != first:
            link[row] = other  # so that no removed row is visited twice
        for _ in range(_COMPARED):
            if other < 0:
                break
            if other not in seen:
                seen.add(other)
                yield other
            other = int(link[other])


def _comparison(
    columns: Sequence[Sequence[str]], settings: DeduplicationSettings
) -> Callable[[int, int, int], Found | None]:
    """Make a function that compares one side of two rows; it returns the reason for duplicates,
    otherwise None.
    """
    form_of = lru_cache(_HELD)(lambda row, side, points: form(columns[side][row], settings, points))

    def compare(row: int, other: int, side: int) -> Found | None:
        one, two = columns[side][row], columns[side][other]
        if "exact" in settings.methods and one == two:
            return _EXACT, 1.0
        points = has_points(one) and has_points(two)  # a text without them has the same words
        first, second = form_of(row, side, points), form_of(other, side, points)
        if "exact" in settings.methods and settings.normalize and first.key == second.key:
            return _NORMALIZED, 1.0
        if "minhash" in settings.methods and first.essential == second.essential:
            shared = len(first.ngrams & second.ngrams)
            union = len(first.ngrams) + len(second.ngrams) - shared
            if (
                shared
                and shared >= settings.threshold * union
                and _adds_words(first.parts, second.parts)
            ):
                return _MINHASH, shared / union
        return None

    return compare


def _adds_words(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether one of two texts has all parts of the other in the same order, and perhaps further
    words.

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
