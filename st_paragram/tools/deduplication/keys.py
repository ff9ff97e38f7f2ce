"""First stage: of every row the keys that bring duplicates together, and its n-grams.

A row has, for each view (see `DeduplicationSettings.views`), a key for exact duplicates, and one for each band of
MinHash (see `cleaning.min_hashes`). The n-grams of both sides of a pair together are a set, too. If both sides are as
similar as the threshold, so is this set: a/b >= t and c/d >= t give (a + c) / (b + d) >= t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic, digest
from st_paragram.tools.cleaning.code_points import CodePoints
from st_paragram.tools.cleaning.min_hashes import minimum_hashes
from st_paragram.tools.cleaning.normalized_key import normalized_key_hashes
from st_paragram.tools.cleaning.word_hashes import mix, word_hashes
from st_paragram.tools.deduplication.lines import Lines
from st_paragram.tools.deduplication.settings import DeduplicationSettings, Method, Unit
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage

Hashes = NDArray[np.uint64]

TASK_ROWS = 1 << 15
_MOST_TASKS = 64  # the files of all of them are open at once
_BLOCK = 512  # rows looked at together: few enough for their arrays to stay in the processor's cache
_NO_NGRAM = np.uint64(np.iinfo(np.uint64).max)
_NORMALIZED_NOTHING = normalized_key_hashes([""])[0]


@dataclass(frozen=True)
class KeyStage(Stage):
    """A task makes the keys of a block of rows, and lists their n-grams.

    Attributes:
        lines: The rows.
        settings: What counts as a duplicate.
        task_rows: Rows of a block.
    """

    name: ClassVar[str] = "keys"
    lines: Lines
    settings: DeduplicationSettings
    task_rows: int

    def digests(self) -> list[str]:
        """The one digest; the folder is for one run alone."""
        return [digest(self.task_rows)]

    def results(self) -> list[Path]:
        """A file of keys per block."""
        return [self.folder() / f"{number:06d}" for number in range(-(-len(self.lines) // self.task_rows))]

    @property
    def columns(self) -> int:
        """Keys of a row."""
        settings = self.settings
        each = (Method.EXACT in settings.methods) + settings.bands * (Method.MINHASH in settings.methods)
        return each * len(settings.views(self.lines.columns))

    def keys(self, column: int, block: int) -> Hashes:
        """The keys of a block's rows in one column, uint64 (rows,); 0 for none."""
        keys: Hashes = np.load(self.results()[block].with_suffix(".keys.npy"), mmap_mode="r")[column]
        return keys

    def run(self, task: int) -> None:
        """Make the keys of a block."""
        begin, path = task * self.task_rows, self.results()[task]
        rows = range(begin, min(begin + self.task_rows, len(self.lines)))
        parts = [self._of(self.lines.block(row, min(row + _BLOCK, rows.stop))) for row in rows[::_BLOCK]]
        keys, ngrams, sizes = (list(each) for each in zip(*parts, strict=True))
        arrays = {"keys": np.hstack(keys)}
        for side in range(self.lines.columns if Method.MINHASH in self.settings.methods else 0):
            arrays[f"ngrams{side}"] = np.concatenate([each[side] for each in ngrams])
            arrays[f"ends{side}"] = np.cumsum(np.concatenate([[0], *(each[side] for each in sizes)]), dtype=np.int64)
        for name, array in arrays.items():
            with atomic(path.with_suffix(f".{name}.npy")) as file:
                np.save(file, array)
        write_metadata(path, {"rows": len(rows)})

    def _of(self, columns: list[list[str]]) -> tuple[Hashes, list[Hashes], list[NDArray[np.int64]]]:
        """Of some rows the keys, uint64 (columns, rows), and for each side the n-grams and how many a row has."""
        settings, rows = self.settings, len(columns[0])
        views, keys = settings.views(len(columns)), list[Hashes]()
        exact = Method.EXACT in settings.methods
        equal = [_exact_keys(texts, settings.normalize) for texts in columns] if exact else []
        near, ngrams, sizes = list[list[Hashes]](), list[Hashes](), list[NDArray[np.int64]]()
        for side, texts in enumerate(columns if Method.MINHASH in settings.methods else ()):
            hashes, row_of = ngrams_of(texts, settings.unit, settings.size)
            ngrams.append(hashes)
            sizes.append(np.bincount(row_of, minlength=rows))
            near.append(_minima(hashes, row_of, rows, settings.bands * settings.minima, side))
        for view in views:
            if exact:
                keys.append(reduce(lambda one, other: mix(mix(one) + other), [equal[side] for side in view]))
            if near:
                keys += _band_keys([near[side] for side in view], settings.minima)
        return np.array(keys, np.uint64).reshape(len(keys), rows), ngrams, sizes


def rows_of_a_task(count: int) -> int:
    """Rows of a task where there are `count` in all."""
    return max(TASK_ROWS, -(-count // _MOST_TASKS))


class Ngrams:
    """The n-grams of all rows, read through memory maps."""

    def __init__(self, stage: KeyStage) -> None:
        """Open what a stage has made."""
        self._stage = stage

    def of(self, row: int, side: int) -> frozenset[int]:
        """The n-grams of a text, as hashes."""
        block, own = divmod(row, self._stage.task_rows)
        ngrams, ends = self._maps[block][side]
        begin, end = ends[own : own + 2].tolist()
        return frozenset(ngrams[begin:end].tolist())

    @cached_property
    def _maps(self) -> list[list[tuple[Any, Any]]]:
        sides = range(self._stage.lines.columns)
        return [[self._map(path, side) for side in sides] for path in self._stage.results()]

    @staticmethod
    def _map(path: Path, side: int) -> tuple[Any, Any]:
        names = (path.with_suffix(f".{name}{side}.npy") for name in ("ngrams", "ends"))
        ngrams, ends = (np.load(name, mmap_mode="r") for name in names)
        return ngrams, ends


def ngrams_of(texts: Sequence[str], unit: Unit, size: int) -> tuple[Hashes, NDArray[np.int64]]:
    """Hashes of the n-grams of some texts, uint64, and the text that each is of, int64, in order of the texts.

    A text that is shorter than an n-gram is one itself.
    """
    if unit is Unit.WORD:
        parts, text_of = word_hashes(texts)
    else:
        points = CodePoints([text.lower() for text in texts])
        text_of = np.repeat(np.arange(len(texts)), points.count(np.ones(len(points.codes), np.bool_)))
        inside = points.codes != ord("\n")
        parts, text_of = points.codes[inside].astype(np.uint64), text_of[inside]
    hashes, lengths = mix(parts), np.bincount(text_of, minlength=len(texts))
    for place in range(1, min(size, len(parts))):
        inside = text_of[place:] == text_of[:-place]
        hashes[:-place] = np.where(inside, mix(hashes[:-place] + parts[place:]), hashes[:-place])
    places = np.arange(len(parts)) - (np.cumsum(lengths) - lengths)[text_of]
    whole = places <= np.maximum(lengths[text_of] - size, 0)
    return hashes[whole], text_of[whole]


def _exact_keys(texts: Sequence[str], normalize: bool) -> Hashes:
    """Keys that are equal if texts are; of texts without letters and digits, by all characters but spaces around."""
    if not normalize:
        return np.array([_hash(text) for text in texts], np.uint64)
    keys = normalized_key_hashes(texts)
    for index in np.flatnonzero(keys == _NORMALIZED_NOTHING).tolist():
        keys[index] = _hash(texts[index].strip())
    return keys


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") | 1


def _minima(hashes: Hashes, row_of: NDArray[np.int64], rows: int, count: int, seed: int) -> list[Hashes]:
    """`count` minimum hashes of each row; the largest number there is where a row has no n-grams."""
    starts = np.flatnonzero(np.diff(row_of, prepend=-1))
    minima = np.full((count, rows), _NO_NGRAM)
    if len(starts):
        for number in range(count):
            minima[number, row_of[starts]] = minimum_hashes(hashes, starts, seed, number)
    return list(minima)


def _band_keys(sides: Sequence[Sequence[Hashes]], minima: int) -> list[Hashes]:
    """Keys in all bands of the sets of all sides together; 0 for an empty set.

    Args:
        sides: For each side its minimum hashes, each uint64 (rows,); a different seed for each side distinguishes the
            sides.
        minima: Minimum hashes of a key.
    """
    lowest = [reduce(np.minimum, each) for each in zip(*sides, strict=True)]
    empty = np.logical_and.reduce([side[0] == _NO_NGRAM for side in sides])
    keys = []
    for begin in range(0, len(lowest), minima):
        key = np.zeros(len(empty), np.uint64)
        for each in lowest[begin : begin + minima]:
            key = mix(key + each)
        key[empty] = 0
        keys.append(key)
    return keys
