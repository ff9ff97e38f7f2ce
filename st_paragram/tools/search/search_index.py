"""Search a text for sentences like others: an index is built once, kept in a folder, and asked as often as one likes.

Whatever finds candidates, cosines are computed from the stored vectors. A folder remembers its model: vectors of
another one say nothing beside its own, so that only that model may ask; and it remembers whether its texts are
sentences or answers to questions (see `content`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.damage import DAMAGED, one_line, printable
from st_paragram.core.encoding.architectures import fingerprint
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.errors import MiningError, ModelDirectoryError, ParagramError, SettingsError
from st_paragram.tools.search import index_folder, indexes
from st_paragram.tools.search.content import Content
from st_paragram.tools.search.effort import Effort, find_effort
from st_paragram.tools.search.exact import exact
from st_paragram.tools.search.index_metadata import SENTENCES, VECTORS, check_files, part_name, read_metadata
from st_paragram.tools.search.neighbours import Neighbours, Vectors
from st_paragram.tools.search.sentences import Sentences
from st_paragram.tools.search.settings import FLAT, SearchSettings
from st_paragram.tools.search.stored_search import approximate, rows_at_a_time
from st_paragram.tools.search.vectors import HeldRows, Rows, StoredVectors, unit_rows

DEFAULT_MEMORY = SearchSettings().memory
_NONE = -1.0  # cosine of a place that an inexact search could not fill


@dataclass(frozen=True)
class Hit:
    """A sentence that was found.

    Attributes:
        score: Its cosine with the query.
        line: Where it stands first in the text, from 1.
        sentence: Itself, with single spaces.
    """

    score: float
    line: int
    sentence: str


class SearchIndex:
    """An index folder, opened: the n distinct sentences of a text and their vectors (n, D)."""

    def __init__(
        self,
        folder: str | Path,
        model: str | Path | None = None,
        memory: int = DEFAULT_MEMORY,
        compare: bool = True,
    ) -> None:
        """Open a folder; neither model nor vectors are loaded yet.

        Args:
            folder: As `build` makes it.
            model: Directory, name or hub id of its model; the recorded name if not given.
            memory: Bytes that vectors may take in memory at a time.
            compare: Compare the content of all files with their SHA-256, which reads them once; sizes are always
                compared.

        Raises:
            MiningError: The folder is damaged or incomplete, or was built with another model.
            ModelDirectoryError: Its model is not found.
        """
        self.folder, self.memory = Path(folder), memory
        self.metadata = read_metadata(self.folder)
        self.effort = self.metadata.effort
        self.model = self._find(model)
        if compare:
            check_files(self.folder, self.metadata)
        self.sentences = self._open_sentences()

    @classmethod
    def build(
        cls,
        source: str | Path,
        output: str | Path,
        model: str | Path,
        settings: SearchSettings | None = None,
        overwrite: bool = False,
        answers: bool = False,
    ) -> SearchIndex:
        """Build an index of a text in a folder, all of it or nothing, and open it.

        Args:
            source: A sentence a line, plain or compressed, or `-`. Identical ones are one; those of fewer than two
                letters or digits are left out.
            output: The folder to make.
            model: Directory, name or hub id.
            settings: How vectors are kept and searched.
            overwrite: Replace an index that is there.
            answers: The texts are answers: they are embedded with the model's `encode_document`, and queries with its
                `encode_query`. The folder remembers it.

        Raises:
            MiningError: The text has no sentence, the output exists, or vectors are not finite.
            SettingsError: Answers are wanted of a model that has no towers of questions and answers.
            TextError, ModelDirectoryError, SettingsError, MissingExtraError: As their names say.
            ParagramError: Another run is at work there.
        """
        settings = settings or SearchSettings()
        content = Content.ANSWERS if answers else Content.SENTENCES
        index_folder.build(str(source), Path(output), str(model), settings, overwrite, content)
        return cls(output, model, settings.memory, compare=False)  # just written

    def __len__(self) -> int:
        """Number of distinct sentences, n."""
        return self.metadata.sentences

    @property
    def content(self) -> Content:
        """What the texts are, and with that how queries are embedded."""
        return Content(self.metadata.content)

    @cached_property
    def encoder(self) -> TextEncoder:
        """The model."""
        return load_encoder(self.model)

    @cached_property
    def vectors(self) -> Rows:
        """Of the sentences; in memory if all are compared and take no more than half of it.

        Raises:
            MiningError: Those that are held in memory are not finite.
        """
        stored = StoredVectors((self.folder / VECTORS,))
        if self.metadata.factory != FLAT or len(self) * self.metadata.dimension * 4 > self.memory // 2:
            return stored
        held = stored.rows(0, len(self))
        if not np.isfinite(held.sum(axis=1)).all():
            raise MiningError(f"{stored.shards[0]}: holds vectors that are not finite; build the index again")
        return HeldRows(held)

    def search(self, queries: Sequence[str], k: int = 10, threshold: float | None = None) -> list[list[Hit]]:
        """The sentences nearest to each query, best first, of equally good ones the earlier.

        Args:
            queries: Texts; questions, if the index is of answers.
            k: How many for each; all there are if there are fewer.
            threshold: Least cosine.

        Raises:
            MiningError: The model gives vectors without a direction, or the folder is damaged.
            SettingsError: k is below 1.
        """
        if not queries:
            return []
        return self.search_vectors(self.content.embed_queries(self.encoder, queries), k, threshold)

    def search_vectors(self, vectors: Vectors, k: int = 10, threshold: float | None = None) -> list[list[Hit]]:
        """The same for queries that were embedded already.

        Args:
            vectors: float32 (q, D), by this index's model, of any length but 0.
            k: How many for each.
            threshold: Least cosine.

        Raises:
            MiningError: As of `search`.
            SettingsError: k is below 1.
        """
        found = self.neighbours(unit_rows(vectors, "queries"), k)
        least = -np.inf if threshold is None else threshold
        hits = []
        for scores, rows in zip(found.similarities, found.indices, strict=True):
            good = (scores >= least) & (scores > _NONE)
            hits.append(self._hits(scores[good].tolist(), rows[good]))
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
        if k < 1:
            raise SettingsError(f"{k} neighbours are wanted; ask for at least 1")
        if queries.ndim != 2 or queries.shape[1] != self.metadata.dimension:
            seen = f"vectors of shape {queries.shape} for an index of {self.metadata.dimension} components"
            raise MiningError(f"{self.folder}: {seen}; embed with its model, {printable(self.metadata.model)}")
        k = min(k, len(self))
        if self.metadata.factory == FLAT:
            found = exact(queries, self.vectors, k, rows_at_a_time(self.memory, self.metadata.dimension))
        else:
            found = approximate(queries, self.vectors, self._parts, k, self.effort)
        if not np.isfinite(found.similarities).all():
            raise MiningError(f"{self.folder}: holds vectors that are not finite; build the index again")
        return found

    def tune(self, queries: Rows, k: int, settings: SearchSettings) -> Effort:
        """Look from now on as hard as it takes to find enough neighbours of these queries; for an inexact index.

        Args:
            queries: Vectors of this index's model; a sample of them is searched for.
            k: Neighbours that `recall_at_k` is about.
            settings: `recall` and `seed` count.
        """
        part_rows = rows_at_a_time(self.memory, self.metadata.dimension)
        found = find_effort(queries, self.vectors, self._parts, k, settings, part_rows)
        self.effort = found.effort
        return found

    def _find(self, model: str | Path | None) -> Path:
        """Directory of the model, which must be the one the index was built with."""
        name = self.metadata.model if model is None else str(model)
        try:
            path = find(name)
        except ModelDirectoryError as error:
            if model is not None:
                raise
            raise ModelDirectoryError(
                f"{self.folder} was built with {printable(name)}: {error}; or name it with --model"
            ) from error
        own, other = self.metadata.fingerprint, fingerprint(path)
        if own != other:
            built = (
                f"built with {printable(self.metadata.model)} (fingerprint {own[:12]}), not with {path} ({other[:12]})"
            )
            raise MiningError(f"{self.folder}: {built}; name the right model, or build the index again")
        return path

    def _open_sentences(self) -> Sentences:
        try:
            sentences = Sentences(self.folder / SENTENCES)
            if len(sentences) != len(self) or sentences.has_ids:
                raise ValueError(f"{len(sentences)} where index.json says {len(self)}")
            return sentences
        except (ParagramError, *DAMAGED) as error:
            seen = f"sentences are damaged ({one_line(error)})"
            raise MiningError(f"{self.folder}: {seen}; build the index again") from error

    @cached_property
    def _parts(self) -> list[tuple[int, Any]]:
        parts = []
        for number, (begin, end) in enumerate(self.metadata.parts):
            path = self.folder / part_name(number)
            index = indexes.read(path)
            if (index.d, index.ntotal) != (self.metadata.dimension, end - begin):
                seen = f"{index.ntotal} vectors of {index.d} components"
                raise MiningError(f"{path}: {seen}, which are not those of index.json; build the index again")
            parts.append((begin, index))
        return parts

    def _hits(self, scores: list[float], rows: NDArray[np.int64]) -> list[Hit]:
        try:
            lines, texts = self.sentences.ids(rows), self.sentences.texts(rows)
        except DAMAGED as error:
            seen = f"sentences are damaged ({one_line(error)})"
            raise MiningError(f"{self.folder}: {seen}; build the index again") from error
        return [Hit(*each) for each in zip(scores, map(int, lines), texts, strict=True)]
