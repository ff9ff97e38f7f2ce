"""Change an index folder: add sentences, delete some, tag them again, put all into one segment.

New files are written next to those that are there; `index.json`, replaced at the end, names the ones that count. A
change that is killed before that leaves the index as it was, and files that the next change removes. Readers go on with
the files that they have opened.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.files import atomic, output_lock, temporary_folder
from st_paragram.errors import MiningError
from st_paragram.tools.embed_files.shards import write_array
from st_paragram.tools.search.fields import (
    FIELDS,
    Column,
    FieldBuilder,
    FieldRecord,
    common,
    joined,
    write_columns,
)
from st_paragram.tools.search.index_folder import add_index
from st_paragram.tools.search.index_metadata import (
    SENTENCES,
    VECTORS,
    IndexMetadata,
    Segment,
    file_names,
    read_metadata,
    write_metadata,
)
from st_paragram.tools.search.segments import OpenIndex
from st_paragram.tools.search.sentences import SentenceCounts, Sentences, copy_sentences, write_tagged_sentences
from st_paragram.tools.search.settings import AUTO, SearchSettings
from st_paragram.tools.search.tagged_texts import TaggedTexts
from st_paragram.tools.search.vectors import VectorType, blocks, pack

_ROWS = 1 << 14  # embedded or copied at a time
_OURS = (SENTENCES, FIELDS, VECTORS, "part-*.faiss", "segment-*", "deleted-*.npy", ".*.part")

Rows = NDArray[np.int64]
Embed = Callable[[list[str]], NDArray[Any]]
Check = Callable[[IndexMetadata], None]


@dataclass(frozen=True)
class Added:
    """What became of sentences that were to be added.

    Attributes:
        counts: Of the text: its lines, and those that were left out.
        added: Sentences that are new.
        tagged: Sentences that were there and have other fields now.
        known: Sentences that were there and stay as they are.
    """

    counts: SentenceCounts
    added: int
    tagged: int
    known: int


@dataclass(frozen=True)
class _New:
    """Rows of a segment that is to be written: rows of the index, given sentences, or such with the vector of a row.

    Attributes:
        index: The index as it is.
        rows: Row of the index for each, -1 for a new sentence: int64 (n,).
        given: Sentences that were given.
        places: Row of each among them, -1 for one that is copied from the index: int64 (n,).
        columns: Fields.
        counts: What became of the lines of their texts.
    """

    index: OpenIndex
    rows: Rows
    given: Sentences | None
    places: Rows
    columns: Mapping[str, Column]
    counts: SentenceCounts

    def write(self, folder: Path, embed: Embed | None = None) -> list[FieldRecord]:
        """Write sentences, vectors and fields; returns what `index.json` says of the fields."""
        metadata, count = self.index.metadata, len(self.rows)
        self._write_sentences(folder / SENTENCES)
        with (
            write_array(folder / VECTORS, metadata.vector_type, (count, metadata.dimension)) as write,
            tqdm(total=count, unit="line", unit_scale=True, disable=None) as bar,
        ):
            for begin, end in blocks(count, _ROWS):
                write(self._vectors(slice(begin, end), embed))
                bar.update(end - begin)
        return write_columns(folder / FIELDS, self.columns)

    def _write_sentences(self, folder: Path) -> None:
        sources = [segment.sentences for segment in self.index.segments]
        which = np.searchsorted(self.index.starts, self.rows, side="right") - 1
        own = self.rows - self.index.starts[which]
        lines = _lines(self.index, self.rows)
        if self.given is not None:
            sources.append(self.given)
            given, new = self.places >= 0, self.rows < 0
            which[given], own[given] = len(sources) - 1, self.places[given]
            lines[new] = self.given.lines[self.places[new]] + self.index.metadata.all_lines
        copy_sentences(sources, which, own, lines, folder, self.counts)

    def _vectors(self, block: slice, embed: Embed | None) -> NDArray[Any]:
        """Vectors as they are stored: those of rows of the index are copied, others are embedded."""
        rows, metadata = self.rows[block], self.index.metadata
        found = np.empty((len(rows), metadata.dimension), metadata.vector_type)
        there, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        for segment, places, own in self.index.places(rows[there]):
            found[there[places]] = segment.stored.packed(own)
        if self.given is not None and embed is not None and len(new):
            vectors = embed(self.given.texts(self.places[block][new]))
            found[new] = pack(vectors, VectorType(metadata.vector_type), "sentences to add")
        return found


def add(folder: Path, texts: TaggedTexts, embed: Embed, check: Check, most_repeats: int | None = None) -> Added:
    """Add sentences.

    Args:
        folder: Of the index.
        texts: The sentences, and their fields.
        embed: Gives vectors of texts, float32 (n, D).
        check: Refuses an index.
        most_repeats: Leave out sentences that occur more often in these texts.

    Raises:
        ParagramError: See `SearchIndex.add`.
    """
    with _changing(folder, check) as (index, work):
        given, columns = _given(texts, work, index, most_repeats)
        there = index.rows_of_sentences(given)
        fields, tagged = _tagged(index, there, columns)
        places = np.flatnonzero((there < 0) | tagged)
        if len(places):
            taken = {name: column.take(places) for name, column in fields.items()}
            _append(index, _New(index, there[places], given, places, taken, given.counts), work, embed)
        new, changed = int((there < 0).sum()), int(tagged.sum())
        return Added(given.counts, new, changed, len(given) - new - changed)


def delete(folder: Path, rows: Callable[[OpenIndex], Rows], check: Check) -> int:
    """Delete rows; returns how many.

    Args:
        folder: Of the index.
        rows: Finds them in the index, which nobody else changes meanwhile.
        check: Refuses an index.

    Raises:
        ParagramError: See `SearchIndex.delete`.
    """
    with _changing(folder, check) as (index, _):
        gone = rows(index)
        if len(gone):
            _commit(index, replace(index.metadata, generation=index.metadata.generation + 1), gone)
        return len(gone)


def delete_sentences(folder: Path, texts: TaggedTexts, check: Check) -> int:
    """Delete sentences by what they say; returns how many were there."""
    with _changing(folder, check) as (index, work):
        given, _ = _given(texts, work, index)
        there = index.rows_of_sentences(given)
        gone = there[there >= 0]
        if len(gone):
            _commit(index, replace(index.metadata, generation=index.metadata.generation + 1), gone)
        return len(gone)


def compact(folder: Path, settings: SearchSettings, check: Check) -> int:
    """Put all sentences into one segment; returns how many there are. See `SearchIndex.compact`."""
    with _changing(folder, check) as (index, work):
        old = index.metadata
        if len(index) == 0:
            raise MiningError(f"{folder}: all sentences are deleted; add some, or remove the folder")
        if len(index.segments) == 1 and not old.deleted and settings.index in (AUTO, old.factory):
            return len(index)
        rows = index.rows_where()
        rows = rows[np.argsort(_lines(index, rows), kind="stable")]
        counts = _sum_of([segment.sentences.counts for segment in index.segments], len(rows))
        new = _New(index, rows, None, np.full(len(rows), -1), _columns(index, rows), counts)
        written = new.write(work / "new")
        metadata = replace(
            old, generation=old.generation + 1, folder=_name(old), lines=old.all_lines, sentences=len(rows)
        )
        metadata = replace(metadata, fields=written, segments=[], deleted=0, deleted_file="")
        wanted = replace(settings, index=old.factory) if settings.index == AUTO else settings
        metadata = add_index(work / "new", metadata, wanted)
        (work / "new").rename(folder / metadata.folder)
        _commit(index, metadata)
        return len(rows)


@contextmanager
def _changing(folder: Path, check: Check) -> Iterator[tuple[OpenIndex, Path]]:
    """Open an index that nobody else changes meanwhile, and a folder to work in."""
    with output_lock(folder, lambda: check(read_metadata(folder))):
        metadata = read_metadata(folder)
        _remove_unnamed(folder, metadata)
        with temporary_folder(folder / "change") as work:
            yield OpenIndex(folder, metadata, 0), work


def _remove_unnamed(folder: Path, metadata: IndexMetadata) -> None:
    """Remove what killed changes have left, and what a change has replaced; other files are left alone."""
    named = {name.split("/")[0] for name in file_names(metadata)}
    for path in (path for pattern in _OURS for path in folder.glob(pattern)):
        if path.name in named:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):  # Windows keeps files that somebody reads
                path.unlink()


def _given(
    texts: TaggedTexts, work: Path, index: OpenIndex, most_repeats: int | None = None
) -> tuple[Sentences, dict[str, Column]]:
    """The distinct sentences of a text, with fields that fit those of the index."""
    fields = FieldBuilder(texts.guess, index.kinds)
    _, columns = write_tagged_sentences(texts.rows, texts.name, work / "given", fields, most_repeats)
    return Sentences(work / "given"), columns


def _tagged(
    index: OpenIndex, there: Rows, columns: Mapping[str, Column]
) -> tuple[dict[str, Column], NDArray[np.bool_]]:
    """Fields of given sentences together with those that they have in the index, and which of them change there."""
    known = np.flatnonzero(there >= 0)
    changes, fields = np.zeros(len(there), bool), dict[str, Column]()
    none = {name: Column(column.kind, [], np.zeros(len(known), np.uint8)) for name, column in columns.items()}
    for name, before in (none | _columns(index, there[known])).items():
        new, old = common([columns.get(name, Column(before.kind, [], np.zeros(len(there), np.uint8))), before])
        codes = new.codes.copy()
        codes[known] = np.where(codes[known] > 0, codes[known], old.codes)
        changes[known] |= codes[known] != old.codes
        fields[name] = Column(new.kind, new.values, codes)
    return fields, changes


def _columns(index: OpenIndex, rows: Rows) -> dict[str, Column]:
    """Fields of rows of the index."""
    parts, order = list[dict[str, Column]](), list[Rows]()
    for segment, places, own in index.places(rows):
        parts.append({name: column.take(own) for name, column in segment.fields.columns.items()})
        order.append(places)
    if not parts:
        return {}
    back = np.argsort(np.concatenate(order))
    return {name: column.take(back) for name, column in joined(parts, list(map(len, order))).items()}


def _lines(index: OpenIndex, rows: Rows) -> Rows:
    """Lines of rows, from 0; 0 for row -1."""
    found, there = np.zeros(len(rows), np.int64), np.flatnonzero(rows >= 0)
    for segment, places, own in index.places(rows[there]):
        found[there[places]] = segment.sentences.lines[own]
    return found


def _append(index: OpenIndex, new: _New, work: Path, embed: Embed) -> None:
    """Add a segment; smaller ones before it are put into it, so that there are few of them."""
    old, kept, gone = index.metadata, list(index.metadata.segments), new.rows[new.rows >= 0]
    count = len(new.rows)
    while kept and kept[-1].sentences <= count:
        count += kept.pop().sentences
    rows = np.arange(index.starts[len(kept) + 1], index.starts[-1])
    counts = [segment.sentences.counts for segment in index.segments[len(kept) + 1 :]]
    new = replace(
        new,
        rows=np.concatenate([rows, new.rows]),
        places=np.concatenate([np.full(len(rows), -1), new.places]),
        columns=joined([_columns(index, rows), new.columns], [len(rows), len(new.rows)]),
        counts=_sum_of([*counts, new.counts], count),
    )
    written = new.write(work / "new", embed)
    segment = Segment(_name(old), new.counts.lines, count, written)
    (work / "new").rename(index.folder / segment.folder)
    _commit(index, replace(old, generation=old.generation + 1, segments=[*kept, segment]), gone)


def _sum_of(counts: Sequence[SentenceCounts], sentences: int) -> SentenceCounts:
    names = ("lines", "blank", "near_empty", "repeated", "boilerplate")
    sums = {name: sum(getattr(each, name) for each in counts) for name in names}
    return SentenceCounts(**sums, sentences=sentences, most_repeated=max(each.most_repeated for each in counts))


def _commit(index: OpenIndex, metadata: IndexMetadata, gone: Rows | None = None) -> None:
    """Delete rows, and let `index.json` name the new files; then remove those that it does not name any more."""
    folder = index.folder
    if gone is not None and len(gone):
        deleted = np.zeros(metadata.rows, bool)
        if index.deleted is not None:
            deleted[: len(index.deleted)] = index.deleted
        deleted[gone] = True
        metadata = replace(metadata, deleted=int(deleted.sum()), deleted_file=f"deleted-{metadata.generation:04d}.npy")
        with atomic(folder / metadata.deleted_file) as handle:
            np.save(handle, np.packbits(deleted))
    names = set(file_names(metadata))
    known = {name: each for name, each in index.metadata.files.items() if name in names}
    metadata = write_metadata(folder, metadata, known, sync=True)
    _remove_unnamed(folder, metadata)


def _name(metadata: IndexMetadata) -> str:
    """Folder of the segment that the next change writes."""
    return f"segment-{metadata.generation + 1:04d}"
