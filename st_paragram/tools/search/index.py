"""A search index: distinct sentences, their vectors by one model, and their fields, on disk."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.models import TextEncoder, has_towers, load_encoder
from st_paragram.core.encoding.unit_embeddings import scaled
from st_paragram.core.extras import require
from st_paragram.core.files import atomic
from st_paragram.core.folders import atomic_folder
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.core.model_directory.find import find, with_commit
from st_paragram.core.outputs import check_output, check_output_folder, output_lock
from st_paragram.errors import MiningError, ModelDirectoryError, SettingsError, one_line, short
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import blocks
from st_paragram.tools.search import approximation
from st_paragram.tools.search import recall as recalls
from st_paragram.tools.search.additions import add_rows, conditions_for
from st_paragram.tools.search.hybrid import index_words, search_hybrid
from st_paragram.tools.search.memory import MEMORY_LIMIT, VectorMemory
from st_paragram.tools.search.nearest import Request, search_table
from st_paragram.tools.search.recall import Measurement
from st_paragram.tools.search.rows import Fields, Source, rows_of
from st_paragram.tools.search.table import (
    FOLDER,
    about_table,
    changing,
    compact_table,
    create_table,
    dimension,
    field_types,
    indexed_columns,
    lance_errors,
    open_table,
    pa,
    update_table,
    visible_columns,
)
from st_paragram.tools.search.text_search import (
    Hit,
    checked_k,
    checked_number,
    checked_threshold,
    embed_queries,
)
from st_paragram.tools.search.where import rewritten

logger = logging.getLogger(__name__)

_CONTROL = re.compile("[\0-\x1f\x7f]")  # characters that LanceDB takes in no path
_QUERIES = 64  # searched at a time
_MAX_SECONDS = 1e8  # of a search, for LanceDB's type of durations


class SearchIndex:
    """A search index on disk.

    Threads and processes may search and change it. Changes are visible at once.

    Attributes:
        folder: The index folder.
        model: Directory of the model.
        answers: Whether sentences are answers, embedded by `encode_document`; then queries are
            embedded by `encode_query`.
        counts: Counts of all lines added by this object: lines, added, known, repeated, blank and
            unknown.

    Examples:
        >>> from st_paragram import SearchIndex
        >>> index = SearchIndex.build(["Where is the station?", "We like cheese."], "lines.index",
        ...     "p-sp-mini")
        >>> (hits,) = index.search(["¿Dónde está la estación?"], k=1)
        >>> hits[0].sentence
        'Where is the station?'
    """

    def __init__(
        self,
        folder: str | Path,
        model: str | Path | None = None,
        memory: int = MEMORY_LIMIT,
    ) -> None:
        """Open a folder.

        Args:
            folder: The index folder.
            model: Directory, name or hub id of its model; by default, the recorded model.
            memory: Maximum bytes for vectors in memory. If they are enough, 2 bytes per dimension
                and 20 bytes per sentence, exact searches after the first keep all vectors. 0: keep
                none.
        """
        self.folder: Path = Path(folder)
        self._memory = VectorMemory(self.folder, memory)
        self.counts: Counter[str] = Counter[str]()
        self._counting = threading.Lock()
        self._table = open_table(self.folder)
        about = about_table(self._table)
        try:
            self.model: Path = find(model or about["model"])
        except ModelDirectoryError as error:
            raise ModelDirectoryError(
                f"{folder}: built with {about['model']}; {error} (--model)"
            ) from error
        if fingerprint(self.model) != about["fingerprint"]:
            raise MiningError(
                f"{folder}: built with {about['model']}, not with {self.model}; use that model"
            )
        self.answers: bool = about["answers"]

    @classmethod
    def build(
        cls,
        source: Source,
        folder: str | Path,
        model: str | Path,
        metadata: Fields | Iterable[Fields] | None = None,
        answers: bool = False,
        overwrite: bool = False,
    ) -> SearchIndex:
        """Build an index, all of it or nothing, and open it.

        Args:
            source: Sentences, pairs of a sentence and its fields, or the path of a text. Repeated
                sentences are stored once. Sentences with fewer than two letters or digits, or
                without a known token, are left out.
            folder: Output folder.
            model: Directory, name or hub id of a model.
            metadata: Fields of all sentences, or of each sentence: text, numbers or booleans. For a
                repeated sentence, later values replace earlier values.
            answers: Sentences are answers to questions; for models with towers for both.
            overwrite: Replace an existing index.
        """
        folder = Path(folder)
        if _CONTROL.search(str(folder.absolute())):
            raise MiningError(
                f"{short(str(folder))}: its path has a line break or another control character;"
                " choose another name"
            )
        path = find(model)
        check = partial(check_output_folder, folder, overwrite, FOLDER, "search index", MiningError)
        with output_lock(folder, check), atomic_folder(folder) as new_folder:
            encoder = load_encoder(path)
            if answers and not has_towers(encoder):
                raise SettingsError(
                    f"{one_line(model)} has no towers for questions and answers; leave answers out"
                )
            about = {
                "model": with_commit(str(model), path),
                "fingerprint": fingerprint(path),
                "answers": answers,
            }
            create_table(new_folder, encoder.get_embedding_dimension(), about)
            with changing(new_folder) as table:
                rows = rows_of(source, metadata)
                counts = add_rows(table, rows, encoder, _sentence_method(answers))
            if not counts["added"]:
                name = f"{source}: " if isinstance(source, (str, Path)) else ""
                raise MiningError(
                    f"{name}no sentences in {counts['lines']} lines; give one sentence per line"
                )
        index = cls(folder, path)
        index.encoder = encoder
        index.counts = counts
        return index

    @property
    def table(self) -> Any:
        """The LanceDB table, for reading, at its last complete version."""
        update_table(self._table)
        return self._table

    def __len__(self) -> int:
        return int(self.table.count_rows())

    @cached_property
    def encoder(self) -> TextEncoder:
        """The model."""
        return load_encoder(self.model)

    @property
    def fields(self) -> dict[str, str]:
        """Types of the sentences' fields by name: string, int64, double or bool."""
        return {name: str(kind) for name, kind in field_types(self.table).items()}

    @property
    def _query_method(self) -> str:
        return "encode_query" if self.answers else "encode"

    @overload
    def search(  # type: ignore[overload-overlap] # a str is a sequence of str
        self,
        queries: str,
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        *,
        recall: float | None = None,
        hybrid: bool = False,
    ) -> list[Hit]: ...

    @overload
    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        *,
        recall: float | None = None,
        hybrid: bool = False,
    ) -> list[list[Hit]]: ...

    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        *,
        recall: float | None = None,
        hybrid: bool = False,
    ) -> list[Hit] | list[list[Hit]]:
        """Find the k sentences nearest to each query, best first, ties in the order of lines.

        Args:
            queries: Query texts, for a list of hits per query, or one text, for its hits. A query
                without a known token is refused.
            k: Number of sentences per query; all if there are fewer.
            threshold: Minimum cosine.
            where: Condition on fields, such as `lang in ('es', 'en') and year >= 2020`.
            recall: Share of the nearest sentences to find in an approximate index, by default the
                recall of `approximate`. If the index does not reach it, or for 1, the query is
                compared with all sentences.
            hybrid: Also find sentences that share words with the query (needs `index_words`). The
                order is that of `hybrid.fused`. The scores are still cosines.
        """
        if isinstance(queries, str):
            return self.search([queries], k, threshold, where, recall=recall, hybrid=hybrid)[0]
        queries = list_of_texts(queries)
        if not queries:
            return []
        vectors = embed_queries(self.encoder, queries, self._query_method)
        texts = queries if hybrid else None
        return self.search_vectors(vectors, k, threshold, where, recall=recall, texts=texts)

    def search_vectors(
        self,
        vectors: Vectors,
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        *,
        recall: float | None = None,
        seconds: float | None = None,
        texts: Sequence[str] | None = None,
    ) -> list[list[Hit]]:
        """Search with query vectors, (q, D), of any length except 0; see `search`.

        A search that takes longer than `seconds` raises a TimeoutError. With the queries' `texts`,
        it is hybrid.
        """
        end = None
        if seconds is not None:
            limit = checked_number("seconds", seconds, "a number of seconds")
            end = time.monotonic() + min(limit, _MAX_SECONDS)
        queries = self._unit_queries(vectors)
        request = Request(
            k=checked_k(k),
            threshold=checked_threshold(threshold),
            condition=None if where is None else self._condition(where),
            recall=None if recall is None else recalls.checked_recall(recall),
            end=end,
        )
        if texts is not None and "text" not in indexed_columns(self.table):
            raise SettingsError(
                "a hybrid search needs the words of the index; add them with st-paragram index"
                " --compact INDEX --hybrid"
            )
        hits = []
        for begin, stop in blocks(len(queries), _QUERIES):
            block = queries[begin:stop]
            with lance_errors(self.folder):
                if texts is None:
                    hits += search_table(self._table, block, request, self._memory)
                else:
                    hits += search_hybrid(
                        self._table, texts[begin:stop], block, request, self._memory
                    )
        return hits

    def _unit_queries(self, vectors: Vectors) -> Vectors:
        """Scale query vectors to length 1; refuse what is not a vector of this index's model."""
        dim = dimension(self._table)
        queries = np.asarray(vectors, np.float32)
        if queries.ndim != 2 or queries.shape[1] != dim:
            raise MiningError(
                f"{self.folder}: vectors have {dim} dimensions, but queries have shape"
                f" {queries.shape}"
            )
        has_direction = np.any(queries, axis=1)
        if not has_direction.all():
            raise MiningError(
                f"{self.folder}: query {int(np.argmin(has_direction)) + 1} has length 0; leave it"
                " out"
            )
        return scaled(queries, has_direction).vectors

    def add(self, sentences: Source, metadata: Fields | Iterable[Fields] | None = None) -> int:
        """Add sentences, as for `build`, and return how many are new.

        Line numbers continue from the last line. An existing sentence keeps its line and vector,
        and new fields replace fields of the same names. An addition that fails or is killed changes
        nothing.
        """
        with changing(self.folder) as table:
            rows = rows_of(sentences, metadata)
            counts = add_rows(table, rows, self.encoder, _sentence_method(self.answers))
        with self._counting:
            self.counts.update(counts)
        return counts["added"]

    def delete(
        self,
        where: str | None = None,
        sentences: Source | None = None,
        lines: Iterable[int] | None = None,
    ) -> int:
        """Delete the sentences that a condition, sentences or line numbers select.

        Returns:
            Number of deleted sentences.
        """
        if [where, sentences, lines].count(None) != 2:
            raise SettingsError(
                "select sentences to delete by exactly one of where, sentences and lines"
            )
        if where is not None:
            conditions = [self._condition(where)]
        elif sentences is not None:
            conditions = conditions_for("text", [text for text, _ in rows_of(sentences, None)])
        else:
            conditions = conditions_for("line", [int(line) for line in lines or ()])
        count = 0
        with changing(self.folder) as table, lance_errors(self.folder):
            for condition in conditions:
                count += int(table.delete(condition).num_deleted_rows)
        return count

    def compact(self) -> None:
        """Rewrite small files as large files, and free the space of deleted sentences."""
        with changing(self.folder) as table:
            compact_table(table)

    def index_words(self) -> None:
        """Index the words of the sentences, for hybrid searches.

        Sentences that are added later are also found. `compact` adds them to the index of words,
        which keeps searches fast.
        """
        with changing(self.folder) as table, lance_errors(self.folder):
            index_words(table)

    def approximate(self, recall: float = recalls.DEFAULT) -> Measurement | None:
        """Group the vectors into lists by k-means, of which a search visits only some.

        An index of fewer than 200,000 sentences stays exact, or becomes exact if it was
        approximate.

        Args:
            recall: Share of the nearest sentences that searches find by default. It sets the number
                of visited lists.

        Returns:
            The recall for several numbers of lists; None if the index is exact.
        """
        wanted = recalls.checked_recall(recall)
        with changing(self.folder) as table:
            approximation.make_exact(table)
            if table.count_rows() < recalls.SMALLEST:
                return None
            measurement = approximation.make_approximate(
                table, wanted, self.encoder, self._query_method
            )
        if measurement.visited() is None and wanted < 1:
            reached = measurement.recall(measurement.lists)
            logger.warning(
                f"{self.folder}: recall {wanted} is not reached with all lists, but {reached:.3f};"
                " searches compare all sentences: give a lower recall (--recall)"
            )
        return measurement

    def export(self, path: str | Path, overwrite: bool = False) -> None:
        """Write all rows to a Parquet file, with vectors as float32."""
        path = Path(path)
        parquet = require("pyarrow.parquet", "search")
        vectors = pa.list_(pa.float32(), dimension(self._table))
        check = partial(check_output, path, overwrite)
        with (
            output_lock(path, check),
            atomic(path) as file,
            lance_errors(self.folder),
        ):
            table = self.table
            batches = table.search().select(visible_columns(table)).to_batches()
            schema = batches.schema.set(0, pa.field("vector", vectors))
            with parquet.ParquetWriter(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch.cast(schema))

    def _condition(self, where: str) -> str:
        """Check a condition and write it for LanceDB."""
        return rewritten(where, {**self.fields, "text": "string", "line": "int64"})


def _sentence_method(answers: bool) -> str:
    return "encode_document" if answers else "encode"
