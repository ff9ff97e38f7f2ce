"""An index folder opened: its segments one after another, and which of their rows are deleted.

The first segment is what was built, the others were added later. Rows are counted through all of them. Everything is
mapped when the folder is opened, so that a reader goes on with what it has opened while a writer replaces files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import FileDescription
from st_paragram.errors import DAMAGED, MiningError, ParagramError, one_line, refused
from st_paragram.tools.search import indexes
from st_paragram.tools.search.fields import FIELDS, Fields, Kind
from st_paragram.tools.search.filters import Condition, check, passing
from st_paragram.tools.search.index_metadata import SENTENCES, VECTORS, IndexMetadata, Segment, part_name
from st_paragram.tools.search.known_sentences import rows_of
from st_paragram.tools.search.sentences import Sentences
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.search.vectors import HeldRows, Rows, StoredVectors

_AGAIN = "build the index again"


class OpenSegment:
    """Sentences, vectors and fields of a segment.

    Attributes:
        sentences: The texts, and their lines.
        stored: Their vectors.
        fields: Their fields.
    """

    def __init__(self, folder: Path, segment: Segment) -> None:
        """Map all files.

        Raises:
            MiningError: They are damaged.
        """
        self.folder = folder
        try:
            self.sentences = Sentences(folder / SENTENCES)
            if len(self.sentences) != segment.sentences or self.sentences.has_ids:
                raise ValueError(f"{len(self.sentences)} where index.json says {segment.sentences}")
            self.sentences.open()
            lengths = {len(array) for array in (self.sentences.lines, *self.sentences.cuts[1:])}
            if lengths != {segment.sentences}:
                raise ValueError(f"arrays of {sorted(lengths)} where index.json says {segment.sentences}")
            self.fields = Fields(folder / FIELDS, segment.fields, segment.sentences)
        except (ParagramError, *DAMAGED) as error:
            raise MiningError(f"{folder}: sentences are damaged ({one_line(error)}); {_AGAIN}") from error
        self.stored = StoredVectors((folder / VECTORS,))
        self.stored.open()

    def __len__(self) -> int:
        """Number of rows, n."""
        return len(self.sentences)

    @cached_property
    def held(self) -> HeldRows:
        """The vectors in memory.

        Raises:
            MiningError: They are not finite.
        """
        rows = self.stored.rows(0, len(self))
        if not np.isfinite(rows.sum(axis=1)).all():
            raise MiningError(f"{self.stored.shards[0]}: holds vectors that are not finite; {_AGAIN}")
        return HeldRows(rows)


class OpenIndex:
    """All segments of a folder.

    Attributes:
        metadata: What `index.json` said.
        segments: What was built, and what was added.
        starts: Row at which each begins, and the number of rows: int64 (segments + 1,).
    """

    def __init__(self, folder: Path, metadata: IndexMetadata, memory: int, before: OpenIndex | None = None) -> None:
        """Map all files.

        Args:
            folder: Of the index.
            metadata: Of the index, see `read_metadata`.
            memory: Bytes that vectors may take in memory at a time.
            before: The same folder as it was before: what stays as it is is taken from there.

        Raises:
            MiningError: They are damaged.
        """
        self.folder, self.metadata, self._memory = folder, metadata, memory
        known = {} if before is None else before._by_digests()
        self.segments = [
            known.get(digests) or OpenSegment(folder / each.folder, each)
            for each, digests in zip(metadata.all_segments, _digests(metadata), strict=True)
        ]
        if before is not None and self.segments[0] is before.segments[0] and "parts" in before.__dict__:
            self.parts = before.parts
        self.starts = np.cumsum([0, *map(len, self.segments)], dtype=np.int64)
        self.deleted = self._read_deleted()

    def _by_digests(self) -> dict[tuple[FileDescription, ...], OpenSegment]:
        return dict(zip(_digests(self.metadata), self.segments, strict=True))

    def _read_deleted(self) -> NDArray[np.bool_] | None:
        """Which rows are deleted, (n,); None if no row is."""
        if not self.metadata.deleted:
            return None
        path, count = self.folder / self.metadata.deleted_file, int(self.starts[-1])
        try:
            bits = np.load(path)
            found = np.unpackbits(bits, count=count).astype(bool)
            if found.sum() != self.metadata.deleted:
                raise ValueError(f"{found.sum()} where index.json says {self.metadata.deleted}")
        except DAMAGED as error:
            raise MiningError(f"{path}: damaged ({one_line(error)}); {_AGAIN}") from error
        return found

    def __len__(self) -> int:
        """Sentences that are not deleted."""
        return int(self.starts[-1]) - self.metadata.deleted

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kinds of all fields, by name."""
        found: dict[str, Kind] = {}
        for segment in self.segments:
            for name, column in segment.fields.columns.items():
                if found.get(name) is not Kind.NUMBER:
                    found[name] = column.kind
        return dict(sorted(found.items()))

    def rows(self, number: int, few: bool = False) -> Rows:
        """Vectors of a segment; in memory if all that are compared take no more than half of it.

        Args:
            number: Of the segment.
            few: Only a few are needed: none are put into memory for that.
        """
        segment = self.segments[number]
        there = "held" in segment.__dict__
        return segment.held if there or (not few and segment in self._held) else segment.stored

    @cached_property
    def _held(self) -> list[OpenSegment]:
        """Segments whose vectors are held in memory: those that are compared, if they take no more than half of it."""
        compared = self.segments if self.metadata.factory == FLAT else self.segments[1:]
        size = sum(map(len, compared)) * self.metadata.dimension * 4
        return compared if size <= self._memory // 2 else []

    @cached_property
    def parts(self) -> list[tuple[int, Any]]:
        """Inexact indexes of the first segment: for each the row it begins at, and itself."""
        parts = []
        for number, (begin, end) in enumerate(self.metadata.parts):
            path = self.folder / self.metadata.folder / part_name(number)
            if not path.is_file():
                raise MiningError(f"{path}: removed since the index was opened; open it again")
            index = indexes.read(path)
            if (index.d, index.ntotal) != (self.metadata.dimension, end - begin):
                seen = f"{index.ntotal} vectors of {index.d} components"
                raise MiningError(f"{path}: {seen}, which are not those of index.json; {_AGAIN}")
            parts.append((begin, index))
        return parts

    def found(self, where: Sequence[Condition] = ()) -> NDArray[np.bool_] | None:
        """Which rows a search may find, (n,): not deleted, and all conditions hold; None: all rows.

        Raises:
            SettingsError: A condition is of an unknown field, or of another kind.
        """
        if not where:
            return None if self.deleted is None else ~self.deleted
        check(where, self.kinds)
        with refused(MiningError, self.folder, "fields are damaged", _AGAIN):
            parts = [passing(where, each.fields.columns, len(each)) for each in self.segments]
        passes = np.concatenate(parts)
        return passes if self.deleted is None else passes & ~self.deleted

    def places(self, rows: NDArray[np.int64]) -> Iterator[tuple[OpenSegment, NDArray[np.int64], NDArray[np.int64]]]:
        """Segments that have some of the rows: with the places of these in `rows`, and their rows within it."""
        which = np.searchsorted(self.starts, rows, side="right") - 1
        for number in np.unique(which):
            own = np.flatnonzero(which == number)
            yield self.segments[number], own, rows[own] - self.starts[number]

    def rows_where(self, where: Sequence[Condition] = ()) -> NDArray[np.int64]:
        """Rows that a search may find, rising; see `found`."""
        found = self.found(where)
        return np.arange(self.starts[-1]) if found is None else np.flatnonzero(found)

    def rows_of_lines(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of lines, from 1, that are there and not deleted; each once, rising."""
        wanted = np.unique(lines) - 1
        there = [np.flatnonzero(np.isin(each.sentences.lines, wanted)) + start for each, start in self._starting()]
        return self._kept(np.concatenate(there))

    def rows_of_sentences(self, sentences: Sentences) -> NDArray[np.int64]:
        """Row of each of m distinct sentences, -1 for one that is not there or deleted: int64 (m,)."""
        found = np.full(len(sentences), -1, np.int64)
        for segment, start in self._starting():
            places, rows = rows_of(sentences, segment.sentences)
            rows = rows + start
            kept = np.ones(len(rows), bool) if self.deleted is None else ~self.deleted[rows]
            found[places[kept]] = rows[kept]
        return found

    def _starting(self) -> Iterator[tuple[OpenSegment, int]]:
        yield from zip(self.segments, self.starts[:-1].tolist(), strict=True)

    def _kept(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows if self.deleted is None else rows[~self.deleted[rows]]


def _digests(metadata: IndexMetadata) -> list[tuple[FileDescription, ...]]:
    """Files of each segment: if they are the same, so is the segment."""
    return [tuple(metadata.files[name] for name in segment.names) for segment in metadata.all_segments]
