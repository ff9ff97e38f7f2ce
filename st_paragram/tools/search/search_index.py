"""Search a text for sentences like others: an index is built once, kept in a folder, and asked as often as one likes.

Whatever finds candidates, cosines are computed from the stored vectors. A folder remembers its model: vectors of
different models are not comparable, so that only that model may search; and it remembers whether its texts are
sentences or answers to questions (see `content`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.errors import DAMAGED, MiningError, ModelDirectoryError, SettingsError, one_line
from st_paragram.tools.search import index_folder, index_update
from st_paragram.tools.search.content import Content
from st_paragram.tools.search.effort import Effort, find_effort
from st_paragram.tools.search.fields import Kind, Value
from st_paragram.tools.search.filters import Where, conditions
from st_paragram.tools.search.index_metadata import TRIES, IndexMetadata, read_metadata
from st_paragram.tools.search.index_update import Added
from st_paragram.tools.search.masked_search import nearest
from st_paragram.tools.search.neighbours import Neighbours, Vectors
from st_paragram.tools.search.segments import OpenIndex
from st_paragram.tools.search.sentences import Sentences
from st_paragram.tools.search.settings import SearchSettings
from st_paragram.tools.search.stored_search import rows_at_a_time
from st_paragram.tools.search.tagged_texts import Metadata, Source, tagged
from st_paragram.tools.search.vectors import Rows, unit_rows

DEFAULT_MEMORY = SearchSettings().memory
_NONE = -1.0  # cosine of a place that an inexact search could not fill


@dataclass(frozen=True)
class Hit:
    """A sentence that was found.

    Attributes:
        score: Its cosine with the query.
        line: Its first line in the text, from 1. Lines that are added later are counted on from the last one,
            and a number stays with its sentence.
        sentence: Itself, with single spaces.
        metadata: Its fields, by name.
    """

    score: float
    line: int
    sentence: str
    metadata: Mapping[str, Value] = field(default_factory=dict, hash=False)


class SearchIndex:
    """An index folder, opened: the n distinct sentences of a text and their vectors (n, D).

    Several threads may search, also while one changes the index. Other processes see a change after `reload`.

    Attributes:
        folder: Of the index.
        memory: Bytes that vectors may take in memory at a time.
        model: Directory of its model.
        effort: How hard an inexact index looks, see `indexes.set_effort`.

    Example:
        >>> from st_paragram import SearchIndex
        >>> index = SearchIndex.build("lines.txt", "lines.index", "p-sp-mini")
        >>> hits = index.search(["a query"], k=2)
        >>> len(hits[0])
        2
    """

    def __init__(
        self,
        folder: str | Path,
        model: str | Path | None = None,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        """Open a folder; neither model nor vectors are loaded yet.

        Args:
            folder: As `build` makes it.
            model: Directory, name or hub id of its model; the recorded name if not given.
            memory: Bytes that vectors may take in memory at a time.

        Raises:
            MiningError: The folder is damaged or incomplete, or was built with another model.
            ModelDirectoryError: Its model is not found.
        """
        self.folder, self.memory = Path(folder), memory
        metadata = read_metadata(self.folder)
        self.effort = metadata.effort
        self.model = self._find(model, metadata)
        self._check_model(metadata)
        self._opened = self._open(metadata)

    def _open(self, metadata: IndexMetadata, before: OpenIndex | None = None) -> OpenIndex:
        """Open all files; again, if they were replaced meanwhile."""
        for _ in range(TRIES):
            try:
                return OpenIndex(self.folder, metadata, self.memory, before)
            except MiningError as error:
                failed, found = error, read_metadata(self.folder)
                if found == metadata:
                    raise
                self._check_model(metadata := found)
        raise failed

    @classmethod
    def build(
        cls,
        source: Source,
        output: str | Path,
        model: str | Path,
        settings: SearchSettings | None = None,
        overwrite: bool = False,
        answers: bool = False,
        metadata: Metadata | None = None,
    ) -> SearchIndex:
        """Build an index of a text in a folder, all of it or nothing, and open it.

        Args:
            source: A path: one sentence per line, plain or compressed, or `-`. Or sentences themselves. Identical
                ones are one; those of fewer than two letters or digits are left out.
            output: The folder to make.
            model: Directory, name or hub id.
            settings: How vectors are kept and searched.
            overwrite: Replace an index that is there.
            answers: The texts are answers: they are embedded with the model's `encode_document`, and queries with its
                `encode_query`. The folder remembers it.
            metadata: Fields for all sentences (`{"source": "wiki"}`), or a mapping for each of them. Values are text,
                numbers or booleans; of a repeated sentence the last ones count.

        Raises:
            MiningError: The text has no sentence, the output exists, or vectors are not finite.
            SettingsError: Answers are wanted of a model that has no towers of questions and answers.
            TextError, ModelDirectoryError, SettingsError, MissingExtraError: As their names say.
            ParagramError: Another run is at work there.
        """
        settings = settings or SearchSettings()
        content = Content.ANSWERS if answers else Content.SENTENCES
        plain = isinstance(source, (str, Path)) and metadata is None
        texts = str(source) if plain else tagged(source, metadata)
        index_folder.build(texts, Path(output), str(model), settings, overwrite, content)
        return cls(output, model, settings.memory)

    def __len__(self) -> int:
        """Number of distinct sentences, n."""
        return len(self._opened)

    @property
    def metadata(self) -> IndexMetadata:
        """What `index.json` says."""
        return self._opened.metadata

    @property
    def sentences(self) -> Sentences:
        """Of the first segment: all of them, if nothing was added or deleted."""
        return self._opened.segments[0].sentences

    @property
    def fields(self) -> dict[str, Kind]:
        """Kinds of the fields that sentences have, by name."""
        return self._opened.kinds

    @property
    def content(self) -> Content:
        """What the texts are, and with that how queries are embedded."""
        return Content(self.metadata.content)

    @cached_property
    def encoder(self) -> TextEncoder:
        """The model."""
        return load_encoder(self.model)

    @property
    def vectors(self) -> Rows:
        """Of `sentences`; in memory if all are compared and take no more than half of it.

        Raises:
            MiningError: Those that are held in memory are not finite.
        """
        return self._opened.rows(0)

    def search(
        self, queries: Sequence[str], k: int = 10, threshold: float | None = None, where: Where | None = None
    ) -> list[list[Hit]]:
        """The sentences nearest to each query, best first, of equally good ones the earlier.

        Args:
            queries: Texts; questions, if the index is of answers.
            k: How many for each; all there are if there are fewer.
            threshold: Least cosine.
            where: Which sentences may be found, by their fields: `"lang=es,en"`, `["lang=es", "year>=2020"]`, or
                `{"lang": ["es", "en"]}`. All conditions must hold.

        Raises:
            MiningError: The model gives vectors without a direction, or the folder is damaged.
            SettingsError: k is below 1, or the filter cannot be read or does not fit the fields.
        """
        if not queries:
            return []
        return self.search_vectors(self.content.embed_queries(self.encoder, queries), k, threshold, where)

    def search_vectors(
        self, vectors: Vectors, k: int = 10, threshold: float | None = None, where: Where | None = None
    ) -> list[list[Hit]]:
        """The same for queries that were embedded already.

        Args:
            vectors: float32 (q, D), by this index's model, of any length but 0.
            k: How many for each.
            threshold: Least cosine.
            where: Which sentences may be found.

        Raises:
            MiningError: As of `search`.
            SettingsError: As of `search`.
        """
        opened = self._opened  # the same one for rows and their texts, even if the index changes meanwhile
        found = self._nearest(opened, unit_rows(vectors, "queries"), k, where)
        least = -np.inf if threshold is None else threshold
        hits = []
        for scores, rows in zip(found.similarities, found.indices, strict=True):
            good = (scores >= least) & (scores > _NONE)
            hits.append(self._hits(opened, scores[good].tolist(), rows[good]))
        return hits

    def neighbours(self, queries: Vectors, k: int) -> Neighbours:
        """The min(k, n) nearest rows; places that an inexact search does not fill have cosine -1.

        Args:
            queries: float32 (q, D), of length 1, of this index's model.
            k: How many for each.

        Raises:
            MiningError: Of another dimension, or the folder is damaged.
            SettingsError: k is below 1.
            MissingExtraError: The search is not exact, and faiss is not installed.
        """
        return self._nearest(self._opened, queries, k, None)

    def _nearest(self, opened: OpenIndex, queries: Vectors, k: int, where: Where | None) -> Neighbours:
        metadata = opened.metadata
        if k < 1:
            raise SettingsError(f"k is {k}; give at least 1")
        if queries.ndim != 2 or queries.shape[1] != metadata.dimension:
            seen = f"vectors of shape {queries.shape} for an index of {metadata.dimension} components"
            raise MiningError(f"{self.folder}: {seen}; embed with its model, {one_line(metadata.model)}")
        allowed = opened.found(conditions(where))
        k = min(k, metadata.rows if allowed is None else int(allowed.sum()))
        if k == 0 or not len(queries):
            none = len(queries), k
            return Neighbours(np.empty(none, np.float32), np.empty(none, np.int64))
        found = nearest(opened, queries, k, allowed, self.effort, self.memory)
        if not np.isfinite(found.similarities).all():
            raise MiningError(f"{self.folder}: holds vectors that are not finite; build the index again")
        return found

    def add(self, source: Source, metadata: Metadata | None = None, settings: SearchSettings | None = None) -> Added:
        """Add sentences, all of them or none.

        Their lines are counted on from the last line of the index. A sentence that is there already is not added again;
        fields that are given for it replace those that it has, and it keeps its line.

        Args:
            source: As of `build`.
            metadata: As of `build`.
            settings: `most_repeats` counts.

        Raises:
            MiningError: There is no sentence, the folder is damaged, or vectors are not finite.
            SettingsError: Fields cannot be kept, or are of another kind than in the index.
            TextError: The text cannot be read.
            ParagramError: Another process is changing the index.
        """
        texts, most = tagged(source, metadata), (settings or SearchSettings()).most_repeats
        added = index_update.add(self.folder, texts, self._embed, self._check_model, most)
        self.reload()
        return added

    def delete(
        self, lines: Iterable[int] | None = None, sentences: Source | None = None, where: Where | None = None
    ) -> int:
        """Delete sentences, and return how many were there; what is asked for in one of three ways.

        Args:
            lines: Numbers, as hits have them.
            sentences: As of `build`.
            where: A filter, as of `search`.

        Raises:
            MiningError: The folder is damaged.
            SettingsError: None or several of the three are given, or the filter does not fit the fields.
            ParagramError: Another process is changing the index.
        """
        if sum(each is not None for each in (lines, sentences, where)) != 1:
            raise SettingsError("select what to delete by exactly one of lines, sentences and where")
        if sentences is not None:
            count = index_update.delete_sentences(self.folder, tagged(sentences, None), self._check_model)
        elif lines is not None:
            numbers = np.array(sorted(set(lines)), np.int64)
            count = index_update.delete(self.folder, lambda index: index.rows_of_lines(numbers), self._check_model)
        else:
            wanted = conditions(where)
            if not wanted:
                raise SettingsError("the filter is empty, and would delete every sentence; remove the folder instead")
            count = index_update.delete(self.folder, lambda index: index.rows_where(wanted), self._check_model)
        self.reload()
        return count

    def compact(self, settings: SearchSettings | None = None) -> int:
        """Put what was built and added into one segment, without what is deleted; nothing is embedded again.

        Searches are then as fast as on an index that was built in one go. Returns the number of sentences.

        Args:
            settings: `index` (auto: as it is), `recall`, `memory` and `seed` count.

        Raises:
            MiningError: All sentences are deleted, or the folder is damaged.
            SettingsError, MissingExtraError: faiss cannot make such an index, or is not installed.
            ParagramError: Another process is changing the index.
        """
        settings = settings or SearchSettings(memory=self.memory)
        count = index_update.compact(self.folder, settings, self._check_model)
        self.reload()
        return count

    def reload(self) -> bool:
        """See what was changed since the index was opened; returns whether there was something.

        Raises:
            MiningError: The folder is damaged, or was built again with another model; what was opened stays in use.
        """
        old, metadata = self.metadata, read_metadata(self.folder)
        if metadata == old:
            return False
        self._check_model(metadata)
        opened = self._open(metadata, before=self._opened)
        if (opened.metadata.folder, opened.metadata.generation > 0) != (old.folder, True):
            self.effort = opened.metadata.effort
        self._opened = opened
        return True

    def tune(self, queries: Rows, k: int, settings: SearchSettings) -> Effort:
        """Look from now on as hard as it takes to find enough neighbors of these queries; for an inexact index.

        Args:
            queries: Vectors of this index's model; a sample of them is searched for.
            k: Neighbors that `recall_at_k` is about.
            settings: `recall` and `seed` count.
        """
        part_rows = rows_at_a_time(self.memory, self.metadata.dimension)
        found = find_effort(queries, self.vectors, self._opened.parts, k, settings, part_rows)
        self.effort = found.effort
        return found

    def _find(self, model: str | Path | None, metadata: IndexMetadata) -> Path:
        """Directory of the model that was named, or of the recorded one."""
        name = metadata.model if model is None else str(model)
        try:
            path = find(name)
        except ModelDirectoryError as error:
            if model is not None:
                raise
            raise ModelDirectoryError(
                f"{self.folder} was built with {one_line(name)}: {error}; or name it with --model"
            ) from error
        return path

    def _check_model(self, metadata: IndexMetadata) -> None:
        """Refuse an index that was built with another model."""
        own, other = metadata.fingerprint, self._fingerprint
        if own != other:
            built = f"built with {one_line(metadata.model)} (fingerprint {own[:12]})"
            seen = f"{built}, not with {self.model} ({other[:12]})"
            raise MiningError(f"{self.folder}: {seen}; name the right model, or build the index again")

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self.model)

    def _embed(self, texts: list[str]) -> Vectors:
        return self.content.embed_texts(self.encoder, texts)

    @property
    def _parts(self) -> list[tuple[int, Any]]:
        return self._opened.parts

    def _hits(self, opened: OpenIndex, scores: list[float], rows: NDArray[np.int64]) -> list[Hit]:
        """Hits of rows of any segments."""
        found: dict[int, Hit] = {}
        try:
            for segment, places, own in opened.places(rows):
                lines, texts = segment.sentences.ids(own), segment.sentences.texts(own)
                for place, row, line, text in zip(places.tolist(), own.tolist(), lines, texts, strict=True):
                    found[place] = Hit(scores[place], int(line), text, segment.fields.of(row))
        except DAMAGED as error:
            seen = f"sentences are damaged ({one_line(error)})"
            raise MiningError(f"{self.folder}: {seen}; build the index again") from error
        return [found[place] for place in range(len(rows))]
