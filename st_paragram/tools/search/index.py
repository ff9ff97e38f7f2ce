"""A search index: distinct sentences, their vectors by one model, and their fields in a LanceDB
table.

The folder holds the table `sentences`: `vector` (float16, length 1), `text`, `line` (from 1) and a
column per field. Its tag `whole` marks the version that readers see. A lock allows one writer at a
time to make new versions, and the tag moves when a change is complete. LanceDB does not work after
a fork: spawn new processes.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.models import TextEncoder, has_towers, load_encoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.extras import require
from st_paragram.core.files import atomic, is_full_disk, naming_full_disk
from st_paragram.core.folders import atomic_folder
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.core.model_directory.find import find, with_commit
from st_paragram.core.outputs import check_output, check_output_folder, locked, output_lock
from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import (
    MiningError,
    ModelDirectoryError,
    SettingsError,
    one_line,
    refused,
    short,
)
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import Rows, blocks, unit_rows
from st_paragram.tools.search import recall as recalls
from st_paragram.tools.search.embedding import (
    Hit,
    checked_k,
    checked_number,
    checked_threshold,
    embed,
    embed_queries,
)
from st_paragram.tools.search.recall import Measurement
from st_paragram.tools.search.rows import Fields, Source, rows_of
from st_paragram.tools.search.where import rewritten

lancedb = require("lancedb", "search", "a search index")
pa, compute = require("pyarrow", "search"), require("pyarrow.compute", "search")

logger = logging.getLogger(__name__)

TABLE, WHOLE = "sentences", "whole"
FOLDER = f"{TABLE}.lance"  # folder of the table
_OWN = ("vector", "text", "line", "query_index", "_distance")
# rows added, texts in a filter, and queries at a time
_ROWS, _TEXTS, _QUERIES = 1 << 16, 10_000, 64
_KINDS = ("string", "int64", "double", "bool")  # types of fields
_CAST = (("int64", "double"), ("int64", "string"))  # allowed casts to the type of a field
# LanceDB ends a name at NUL, and reads periods and backticks as signs
_NAME = re.compile(r"[^\W_][^.`\x00-\x1f\x7f-\x9f\ud800-\udfff]*")
_MOST_EXACT = 2**53  # largest whole number that a double and its neighbors represent exactly
_TRIES = 5  # attempts to read a table while others compact it
_CANDIDATES = 256  # sentences that an approximate search compares exactly, at least
_CANDIDATES_PER_HIT = 4
_SPARE = 16  # further sentences of an exact search, at least
_TIES = 10_000  # more equal scores at the end of the hits are cut in any order
_ALL_LISTS = 1 << 20
_MOST_SECONDS = 1e8  # of a search, for LanceDB's type of durations
_SCORE_ERROR = 1e-4  # of LanceDB, which rounds queries to float16


class _Visit(NamedTuple):
    """How a search visits a table: LanceDB's distance, and the number of lists, None to compare all
    sentences.
    """

    distance: str
    lists: int | None


_EXACT = _Visit("dot", None)


class _Request(NamedTuple):
    """What a search asks for."""

    k: int
    threshold: float = -np.inf
    condition: str | None = None  # for LanceDB
    recall: float | None = None
    end: float | None = None  # time at which it is given up, of `time.monotonic`


class SearchIndex:
    """A search index on disk. Threads and processes may search and change it; changes are visible
    at once.

    Attributes:
        folder: The index folder.
        model: Directory of the model.
        answers: Whether sentences are answers, embedded by `encode_document`, with queries embedded
            by `encode_query`.
        counts: Counts of all lines added by this object: lines, added, known, repeated, blank and
            unknown.

    Example:
        >>> from st_paragram import SearchIndex
        >>> index = SearchIndex.build(["Where is the station?", "We like cheese."], "lines.index",
        ...     "p-sp-mini")
        >>> (hits,) = index.search(["¿Dónde está la estación?"], k=1)
        >>> hits[0].sentence
        'Where is the station?'
    """

    def __init__(self, folder: str | Path, model: str | Path | None = None) -> None:
        """Open a folder; `model` is the directory, name or hub id of its model, by default the
        recorded model.
        """
        self.folder = Path(folder)
        self.counts = Counter[str]()
        self._counting = threading.Lock()
        self._warned = False
        self._table = _opened(self.folder)
        about = _about(self._table)
        try:
            self.model = find(model or about["model"])
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
        folder, path = Path(folder), find(model)
        check = partial(check_output_folder, folder, overwrite, FOLDER, "search index", MiningError)
        with output_lock(folder, check), atomic_folder(folder) as new:
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
            vectors = pa.list_(pa.float16(), encoder.get_embedding_dimension())
            columns = {"vector": vectors, "text": pa.string(), "line": pa.int64()}
            schema = pa.schema(columns.items(), metadata={"st_paragram": json.dumps(about)})
            table = lancedb.connect(str(new)).create_table(TABLE, schema=schema)
            table.tags.create(WHOLE, table.version)
            made = cls(new, path)
            made.encoder = encoder
            if not made.add(source, metadata):
                where = f"{source}: " if isinstance(source, (str, Path)) else ""
                raise MiningError(
                    f"{where}no sentences in {made.counts['lines']} lines; give one sentence per"
                    " line"
                )
        made.folder, made._table = folder, _opened(folder)
        return made

    @property
    def table(self) -> Any:
        """The LanceDB table, for reading, at its last complete version."""
        _again(lambda: self._table.checkout(WHOLE))
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
        return {
            field.name: str(field.type) for field in self.table.schema if field.name not in _OWN
        }

    @overload
    def search(  # type: ignore[overload-overlap] # a str is a sequence of str
        self,
        queries: str,
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        *,
        recall: float | None = None,
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
    ) -> list[list[Hit]]: ...

    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        *,
        recall: float | None = None,
    ) -> list[Hit] | list[list[Hit]]:
        """Find the k sentences nearest to each query, best first, ties in the order of lines.

        Args:
            queries: Query texts, for a list of hits per query, or one text, for its hits. A query
                without a known token is refused.
            k: Number of sentences per query; all if there are fewer.
            threshold: Minimum cosine.
            where: Condition on fields, such as `lang in ('es', 'en') and year >= 2020`.
            recall: Share of the nearest sentences to find in an approximate index, by default that
                of `approximate`. If the index does not reach it, or for 1, the query is compared
                with all sentences.
        """
        if isinstance(queries, str):
            return self.search([queries], k, threshold, where, recall=recall)[0]
        queries = list_of_texts(queries)
        if not queries:
            return []
        vectors = embed_queries(self.encoder, queries, "encode_query" if self.answers else "encode")
        return self.search_vectors(vectors, k, threshold, where, recall=recall)

    def search_vectors(
        self,
        vectors: Vectors,
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        *,
        recall: float | None = None,
        seconds: float | None = None,
    ) -> list[list[Hit]]:
        """Search with query vectors, (q, D), from this index's model, of any length except 0; see
        `search`.

        A search that takes longer than `seconds` raises a TimeoutError.
        """
        end = None
        if seconds is not None:
            limit = checked_number("seconds", seconds, "a number of seconds")
            end = time.monotonic() + min(limit, _MOST_SECONDS)
        dim = self.table.schema.field("vector").type.list_size
        with refused(
            MiningError, self.folder, "queries are not vectors", f"give vectors of {dim} dimensions"
        ):
            queries = np.asarray(vectors, np.float32)
        if queries.ndim != 2 or queries.shape[1] != dim:
            raise MiningError(
                f"{self.folder}: vectors have {dim} dimensions, but queries have shape"
                f" {queries.shape}"
            )
        k = checked_k(k)
        minimum = checked_threshold(threshold)
        wanted = None if recall is None else recalls.checked_recall(recall)
        queries = unit_rows(queries, "queries")
        hits = list[list[Hit]]()
        request = _Request(
            k=k,
            threshold=minimum,
            condition=None if where is None else self._condition(where),
            recall=wanted,
            end=end,
        )
        for begin, stop in blocks(len(queries), _QUERIES):
            with _refused(self.folder):
                hits += self._hits(queries[begin:stop], request)
        return hits

    def _hits(self, queries: Vectors, request: _Request) -> list[list[Hit]]:
        """Return the hits of each query, (q, D).

        LanceDB selects candidates, more than k. Exact cosines and lines then decide their order and
        the cut at k. If sentences after the last candidate may be as near as the last hit, the
        search is repeated with more candidates.
        """
        k = request.k
        hits = [list[Hit]() for _ in queries]
        pending = np.arange(len(queries))
        spare = max(_SPARE, k // 8)
        while len(pending):

            def search(some: Vectors = queries[pending], count: int = k + spare) -> tuple[Any, int]:
                table = self.table
                size = table.count_rows()
                visit = self._visit(table, request)
                rows = _candidates(table, some, min(count, size + 1), visit, request)
                is_limited = request.condition is None and visit.lists is not None
                return rows, min(_limit(count), size) if is_limited else 0

            rows, needed = _again(search)
            cosines, places = _ranked(queries[pending], rows)
            counts = (places >= 0).sum(axis=1)
            for number in pending[counts < needed]:  # the visited lists hold too few sentences
                (hits[number],) = self._hits(
                    queries[number : number + 1], request._replace(recall=1.0)
                )
            is_repeated = np.zeros(len(pending), bool)
            if cosines.shape[1] >= k + spare and spare < _TIES:
                last = cosines[np.arange(len(pending)), counts - 1]
                is_repeated = (counts >= k + spare) & (cosines[:, k - 1] - last < _SCORE_ERROR)
            is_complete = (counts >= needed) & ~is_repeated
            is_hit = (places >= 0) & (cosines >= request.threshold) & is_complete[:, None]
            is_hit[:, k:] = False
            numbers = pending[np.nonzero(is_hit)[0]]
            for number, hit in zip(
                numbers, _read(rows.take(places[is_hit]), cosines[is_hit]), strict=True
            ):
                hits[number].append(hit)
            pending = pending[is_repeated & (counts >= needed)]
            spare *= 8
        return hits

    def _visit(self, table: Any, request: _Request) -> _Visit:
        """Choose the lists of a table to visit."""
        index = _vector_index(table)
        if index is None or request.recall == 1:
            return _EXACT
        measurement = _measurement(table)
        if measurement is not None:
            lists = measurement.visited(request.recall)
        else:
            if not self._warned:
                advice = f"measure it with st-paragram index --compact {self.folder} --approximate"
                logger.warning(
                    f"{self.folder}: the recall of this approximate index is unknown; {advice}"
                )
                self._warned = True
            lists = None if request.recall else max(20, int(table.count_rows() ** 0.5) // 8)
        if lists is None:
            return _EXACT
        return _Visit(index.distance_type, lists if request.condition is None else _ALL_LISTS)

    def add(self, sentences: Source, metadata: Fields | Iterable[Fields] | None = None) -> int:
        """Add sentences, as for `build`, and return how many are new.

        Line numbers continue from the last line. An existing sentence keeps its line and vector,
        and new fields replace fields of the same names. An addition that fails or is killed changes
        nothing.
        """
        with self._changing() as table:
            counts = self._fill(table, rows_of(sentences, metadata))
        with self._counting:
            self.counts.update(counts)
        return counts["added"]

    def delete(
        self,
        where: str | None = None,
        sentences: Source | None = None,
        lines: Iterable[int] | None = None,
    ) -> int:
        """Delete sentences selected by a condition, sentences or line numbers; return how many were
        deleted.
        """
        if sum(each is not None for each in (where, sentences, lines)) != 1:
            raise SettingsError(
                "select sentences to delete by exactly one of where, sentences and lines"
            )
        if where is not None:
            filters = [self._condition(where)]
        elif sentences is not None:
            filters = _filters("text", [_quoted(text) for text, _ in rows_of(sentences, None)])
        else:
            filters = _filters("line", [str(int(line)) for line in lines or ()])
        with self._changing() as table, _refused(self.folder):
            return sum(int(table.delete(each).num_deleted_rows) for each in filters)

    def compact(self) -> None:
        """Rewrite small files as large files; remove deleted sentences and earlier versions from
        the disk.
        """
        with self._changing() as table:
            if int(table.list_versions()[-1]["metadata"]["total_deletion_file_rows"]):
                # rewrites all rows: optimize leaves a few deleted rows
                table.update(values_sql={"line": "line"})
            version = None
            # after an addition to an approximate index, LanceDB needs two rounds
            while table.version != version:
                version = table.version
                table.optimize()
            table.tags.update(WHOLE, version)
            # Nobody else writes, so files that belong to no version are leftovers. An age of 0
            # would make LanceDB warn.
            table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    def approximate(self, recall: float = recalls.DEFAULT) -> Measurement | None:
        """Group the vectors into lists by k-means, so that a search visits only some lists; measure
        its recall.

        An index of fewer than 200,000 sentences stays exact, or becomes exact if it was
        approximate.

        Args:
            recall: Share of the nearest sentences that searches find by default. It sets the number
                of visited lists.

        Returns:
            The recall for several numbers of lists; None if the index is exact.
        """
        wanted = recalls.checked_recall(recall)
        with self._changing() as table:
            _make_exact(table)
            if table.count_rows() < recalls.SMALLEST:
                return None
            lists = max(1, int(table.count_rows() ** 0.5) // 8)
            # Codes of one bit per dimension select the candidates, so that visiting many lists
            # takes little time. else LanceDB has none
            has_codes = table.schema.field("vector").type.list_size % 8 == 0
            kinds = require("lancedb.index", "search")
            kind = kinds.IvfRq if has_codes else kinds.IvfFlat
            config = kind(_EXACT.distance, num_partitions=lists, max_iterations=10, sample_rate=64)
            table.create_index("vector", config=config)
            measurement = self._measured(table, wanted, lists)
            _keep(table, "vector", "recall", measurement.to_json())
        if measurement.visited() is None and wanted < 1:
            seen = (
                f"recall {wanted} is not reached with all lists, but"
                f" {measurement.recall(lists):.3f}"
            )
            logger.warning(
                f"{self.folder}: {seen}; searches compare all sentences: give a lower recall"
                " (--recall)"
            )
        return measurement

    def _measured(self, table: Any, wanted: float, lists: int) -> Measurement:
        """Measure the recall of an approximate index for several numbers of lists."""
        count = table.count_rows()
        sample = np.random.default_rng(0).permutation(count)[: recalls.SAMPLE]
        texts = (
            table.take_offsets(np.sort(sample).tolist())
            .select(["text"])
            .to_arrow()["text"]
            .to_pylist()
        )
        by_kind = recalls.held_out_queries(texts)
        queries = list(chain.from_iterable(by_kind.values()))
        kinds = np.repeat(list(by_kind), list(map(len, by_kind.values())))
        vectors, known = unit_embeddings(
            self.encoder, queries, "encode_query" if self.answers else "encode"
        )
        vectors = vectors[known]
        kinds = kinds[known]
        nearest = recalls.nearest_scores(vectors, _vectors(table))
        width = nearest.shape[1]
        index = _vector_index(table)
        shares = {}
        for visited in recalls.numbers_of_lists(lists):
            visit = _Visit(index.distance_type, visited)
            scores: Vectors = np.full((len(vectors), width), -np.inf, np.float32)
            for begin, end in blocks(len(vectors), _QUERIES):
                some = vectors[begin:end]
                cosines, _ = _ranked(
                    some, _candidates(table, some, _CANDIDATES, visit, _Request(k=width))
                )
                scores[begin:end, : cosines.shape[1]] = cosines[:, :width]
            shares[visited] = recalls.found_shares(scores, nearest, kinds)
        return Measurement(wanted, count, lists, shares)

    def export(self, path: str | Path, overwrite: bool = False) -> None:
        """Write all rows to a Parquet file, with vectors as float32."""
        path, parquet = Path(path), require("pyarrow.parquet", "search")
        field = pa.field(
            "vector", pa.list_(pa.float32(), self.table.schema.field("vector").type.list_size)
        )
        with (
            output_lock(path, partial(check_output, path, overwrite)),
            atomic(path) as handle,
            _refused(self.folder),
        ):
            rows = self.table.search().to_batches()
            with parquet.ParquetWriter(handle, rows.schema.set(0, field)) as writer:
                for batch in rows:
                    writer.write_batch(batch.set_column(0, field, batch["vector"].cast(field.type)))

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        """Give the table to one writer at a time; unfinished changes are undone by the next writer."""
        with locked(self.folder, wait=True), naming_full_disk(self.folder):
            table = _opened(self.folder)
            whole = table.version
            table.checkout_latest()
            if table.version != whole:
                table.restore(whole)
            yield table
            table.tags.update(WHOLE, table.version)

    def _condition(self, where: str) -> str:
        """Check a condition and write it for LanceDB."""
        return rewritten(where, {**self.fields, "text": "string", "line": "int64"})

    def _fill(self, table: Any, rows: Iterator[tuple[str, Fields]]) -> Counter[str]:
        """Add rows, block by block: new sentences, and existing sentences with further fields;
        return counts.
        """
        counts = Counter[str]()
        last = int((table.schema.field("line").metadata or {}).get(b"last", 0))
        method = "encode_document" if self.answers else "encode"
        while block := list(islice(rows, _ROWS)):
            lines = [
                (line, text, fields)
                for line, (text, fields) in enumerate(block, last + 1)
                if has_two_letters(text)
            ]
            given: dict[str, tuple[int, dict[str, Any]]] = {}  # sentence -> line and fields
            for line, text, values in lines:
                given.setdefault(text, (line, {}))[1].update(values)
            last += len(block)
            fields = _columns(table, [values for _, values in given.values()])
            numbers = pa.array([line for line, _ in given.values()], "int64")
            new = pa.table({"text": pa.array(given, "string"), "line": numbers, **fields})
            known = _known(table, new["text"])
            places = compute.index_in(known["text"], new["text"])
            for name in fields:
                values = compute.coalesce(new[name].take(places), known[name])
                known = known.set_column(known.schema.get_field_index(name), name, values)
            new = new.filter(compute.invert(compute.is_in(new["text"], known["text"])))
            vectors, understood = embed(self.encoder, new["text"].to_pylist(), method)
            column = pa.FixedSizeListArray.from_arrays(
                vectors.astype(np.float16).ravel(), vectors.shape[1]
            )
            counts.update(
                lines=len(block), blank=len(block) - len(lines), repeated=len(lines) - len(given)
            )
            counts.update(known=len(known), added=len(vectors), unknown=len(new) - len(vectors))
            new = new.filter(pa.array(understood)).append_column("vector", column)
            changed = pa.concat_tables([known, new] if fields else [new], promote_options="default")
            if len(changed):
                table.merge_insert(
                    "text"
                ).when_matched_update_all().when_not_matched_insert_all().execute(changed)
        _keep(table, "line", "last", str(last))
        return counts


def _known(table: Any, texts: Any) -> Any:
    """Return the rows of the sentences that a table has."""
    few = (
        ["true"]
        if len(texts) > _TEXTS
        else _filters("text", map(_quoted, texts.to_pylist())) or ["false"]
    )
    found = pa.concat_tables(
        table.search().where(each).select(["text"]).with_row_id(True).to_arrow() for each in few
    )
    return table.take_row_ids(
        found["_rowid"].filter(compute.is_in(found["text"], texts)).to_pylist()
    ).to_arrow()


def _filters(column: str, values: Iterable[str]) -> list[str]:
    """Yield conditions for blocks of a column's values, small enough for fast SQL parsing."""
    values = iter(dict.fromkeys(values))
    return [
        f"{column} in ({', '.join(some)})"
        for some in iter(lambda: list(islice(values, _TEXTS)), [])
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _columns(table: Any, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Make Arrow arrays of the fields of n sentences, (n,) each; add columns for new fields to the
    table.
    """
    types = {field.name: field.type for field in table.schema if field.name not in _OWN}
    columns = {}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if name not in types and (name in _OWN or not _NAME.fullmatch(name)):
            advice = "use another name, without periods, backticks and control characters"
            raise SettingsError(f"field {short(name)}: {advice}")
        column = _array(name, [row.get(name) for row in rows])
        kept = types.get(name, column.type)
        seen, wanted = str(column.type), str(kept)
        if (seen, wanted) == ("double", "int64"):
            _widen(table, name)
            kept = column.type
        elif seen not in _KINDS or (seen != wanted and (seen, wanted) not in _CAST):
            seen = f"a value is {seen}" + f", but earlier values are {wanted}" * (seen != wanted)
            raise SettingsError(f"field {name}: {seen}; give text, numbers or booleans of one type")
        try:
            columns[name] = column.cast(kept)
        except pa.ArrowInvalid as error:
            raise _too_large(name) from error
    if new := [
        pa.field(name, column.type) for name, column in columns.items() if name not in types
    ]:
        table.add_columns(pa.schema(new))
    return columns


def _array(name: str, values: list[Any]) -> Any:
    """Make an Arrow array of the values of a field; whole numbers and decimals together become
    decimals.
    """
    types = {type(value) for value in values if value is not None}
    if types == {int, float} and any(
        abs(value) > _MOST_EXACT for value in values if isinstance(value, int)
    ):
        raise _too_large(name)
    if bool in types and len(types) > 1:  # Arrow would make some of them numbers
        raise SettingsError(
            f"field {name}: some values are true or false and others are not; give values of one"
            " type"
        )
    try:
        return pa.array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise SettingsError(f"field {name}: {one_line(error)}; give values of one type") from error


def _widen(table: Any, name: str) -> None:
    """Make a column of whole numbers a column of decimals."""
    column = f"`{name}`"
    if table.count_rows(f"{column} > {_MOST_EXACT} or {column} < {-_MOST_EXACT}"):
        raise _too_large(name)
    wide = f"{name} as decimals"  # LanceDB cannot change the type of the column itself
    while wide in table.schema.names:
        wide += "_"
    table.add_columns({wide: f"cast({column} as double)"})
    table.drop_columns([name])
    table.alter_columns({"path": wide, "rename": name})


def _too_large(name: str) -> SettingsError:
    seen = f"whole numbers above {_MOST_EXACT:,} cannot be mixed with decimals exactly"
    return SettingsError(f"field {name}: {seen}; give such numbers as text, or only whole numbers")


def describe(folder: Path) -> dict[str, Any]:
    """Describe an index for `st-paragram info`, without its model."""
    table = _opened(folder)
    columns = {field.name: str(field.type) for field in table.schema}
    how = "approximate" if table.list_indices() else "exact"
    description = {"name": folder.resolve().name, **_about(table), "sentences": table.count_rows()}
    description |= {"columns": columns, "search": how, "version": table.version}
    measurement = _measurement(table)
    if measurement is not None:
        description["recall"] = str(measurement)
    return description


def check(folder: Path) -> str:
    """Read all rows of an index; return their number in words."""
    with _refused(folder):
        rows = sum(batch.num_rows for batch in _opened(folder).search().to_batches())
    return f"all {rows:,} sentences can be read"


def _opened(folder: Path) -> Any:
    """Open the table of an index folder, at its last complete version."""
    if not (folder / FOLDER).is_dir():
        raise MiningError(f"{folder}: not a search index; build one with st-paragram index")
    with _refused(folder):
        table = lancedb.connect(str(folder)).open_table(TABLE)
        _again(lambda: table.checkout(WHOLE))
        return table


def _again(ask: Callable[[], Any]) -> Any:
    """Query a table, several times if a compaction removes the files of its version meanwhile."""
    for _ in range(_TRIES):
        try:
            return ask()
        except (RuntimeError, ValueError) as error:
            if not re.search("(?i)not found|no longer exists", str(error)):
                raise
    return ask()


def _about(table: Any) -> dict[str, Any]:
    """Return the metadata recorded when an index was built."""
    about: dict[str, Any] = json.loads(table.schema.metadata[b"st_paragram"])
    return about


def _vector_index(table: Any) -> Any:
    """Return statistics of the approximate index of a table; None if it has none."""
    names = [index.name for index in table.list_indices() if list(index.columns) == ["vector"]]
    return table.index_stats(names[0]) if names else None


def _make_exact(table: Any) -> None:
    """Remove the approximate index of a table."""
    for index in table.list_indices():
        if list(index.columns) == ["vector"]:
            table.drop_index(index.name)
            _keep(table, "vector", "recall", "")


def _measurement(table: Any) -> Measurement | None:
    """Return the recall of an approximate index; None if it has not been measured."""
    text = (table.schema.field("vector").metadata or {}).get(b"recall")
    return Measurement.from_json(text) if text else None


def _keep(table: Any, column: str, name: str, value: str) -> None:
    """Store a value in the table, with a column."""
    table.update_field_metadata({"path": column, "metadata": {name: value}})


def _vectors(table: Any) -> Iterator[Vectors]:
    """Yield the vectors of a table in blocks, (n, D), of length 1."""
    for batch in table.search().select(["vector"]).to_batches():
        column = batch["vector"]
        rows = column.flatten().to_numpy().astype(np.float32).reshape(-1, column.type.list_size)
        yield rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _candidates(table: Any, queries: Vectors, count: int, visit: _Visit, request: _Request) -> Any:
    """Return at least `count` sentences near each query, or all, in an Arrow table."""
    query = table.search(list(queries), vector_column_name="vector").distance_type(visit.distance)
    query = query.select([*table.schema.names, "_distance"])
    timeout = (
        None if request.end is None else timedelta(seconds=max(0.0, request.end - time.monotonic()))
    )
    if request.condition is not None:
        query = query.where(request.condition)
    if visit.lists is None:
        return query.bypass_vector_index().limit(count).to_arrow(timeout=timeout)
    # A maximum above the minimum would visit all lists for some queries, and stop at the first
    # matches of a filter.
    query = query.minimum_nprobes(visit.lists).maximum_nprobes(visit.lists)
    return query.limit(_limit(count)).to_arrow(timeout=timeout)


def _limit(count: int) -> int:
    """Return the number of candidates of an approximate search, the same for all searches of up to
    40 sentences.
    """
    return max(_CANDIDATES, _CANDIDATES_PER_HIT * count)


def _ranked(queries: Vectors, candidates: Any) -> tuple[Vectors, NDArray[np.int64]]:
    """Compute exact cosines, since LanceDB rounds queries to float16, and sort candidates by them,
    then by lines.

    Returns:
        Cosines of each query with its candidates, (q, c), best first, and their rows in the table,
        (q, c), -1 for none.
    """
    numbers = _numbers(candidates, queries)
    counts = np.bincount(numbers, minlength=len(queries))
    rows = np.full((len(queries), counts.max()), -1, np.int64)
    is_candidate = np.arange(rows.shape[1]) < counts[:, None]
    rows[is_candidate] = np.argsort(numbers, kind="stable")
    if not len(candidates):
        return np.empty(rows.shape, np.float32), rows
    vectors = (
        candidates["vector"].combine_chunks().flatten().to_numpy().reshape(len(candidates), -1)
    )
    cosines = Rows([vectors]).cosines(queries, rows)
    order = np.lexsort((candidates["line"].to_numpy()[rows], -cosines, ~is_candidate), axis=1)
    return np.take_along_axis(cosines, order, 1), np.take_along_axis(rows, order, 1)


def _numbers(candidates: Any, queries: Vectors) -> NDArray[np.int64]:
    """Return the number of the query of each candidate."""
    numbers = (
        candidates["query_index"].to_numpy() if len(queries) > 1 else np.zeros(len(candidates))
    )
    return numbers.astype(np.int64)


def _read(rows: Any, scores: Vectors) -> Iterator[Hit]:
    """Yield hits from the rows of an Arrow table and their scores."""
    fields = rows.select([name for name in rows.schema.names if name not in _OWN]).to_pylist()
    lines, texts = rows["line"].to_pylist(), rows["text"].to_pylist()
    for score, line, text, values in zip(scores.tolist(), lines, texts, fields, strict=True):
        given = {name: value for name, value in values.items() if value is not None}
        yield Hit(min(score, 1.0), line, text, given)


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    """Turn LanceDB's errors into one line without Rust source locations."""
    try:
        yield
    except (ValueError, RuntimeError, OSError, LookupError, TypeError) as error:
        if is_full_disk(error):
            raise MiningError(f"{folder}: no space left on the disk; free disk space") from error
        reason = one_line(re.split(r", /\S+\.rs:\d", str(error))[0].removeprefix("Invalid input, "))
        if "Query timeout" in reason:
            raise TimeoutError(reason) from error
        raise MiningError(f"{folder}: {reason}") from error
