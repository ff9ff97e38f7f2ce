"""A search index: distinct sentences, their vectors by one model, and their fields in a LanceDB table.

The folder holds the table `sentences`: `vector` (float16, length 1), `text`, `line` (from 1) and a column per field.
Its tag `whole` marks the version that readers see. A lock allows one writer at a time to make new versions, and the tag
moves when a change is complete. LanceDB does not work after a fork: spawn new processes.
"""

from __future__ import annotations

import json
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
from typing import Any, overload

import numpy as np

from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.find import find, with_commit
from st_paragram.core.encoding.models import TextEncoder, has_towers, load_encoder
from st_paragram.core.extras import require
from st_paragram.core.files import (
    atomic,
    atomic_folder,
    check_output,
    check_output_folder,
    locked,
    output_lock,
)
from st_paragram.errors import MiningError, ModelDirectoryError, SettingsError, one_line, short
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import unit_rows
from st_paragram.tools.search.embedding import Hit, embed, embed_queries
from st_paragram.tools.search.rows import Fields, Source, has_words, rows_of
from st_paragram.tools.search.where import rewritten

lancedb = require("lancedb", "search", "a search index")
pa, compute = require("pyarrow", "search"), require("pyarrow.compute", "search")

TABLE, WHOLE = "sentences", "whole"
FOLDER = f"{TABLE}.lance"  # folder of the table
_OWN = ("vector", "text", "line", "query_index", "_distance")
_ROWS, _TEXTS, _QUERIES = 1 << 16, 10_000, 64  # rows added, texts in a filter, and queries at a time
_KINDS = ("string", "int64", "double", "bool")  # types of fields
_CAST = (("int64", "double"), ("int64", "string"))  # allowed casts to the type of a field
_TRIES = 5  # attempts to read a table while others compact it


class SearchIndex:
    """A search index on disk. Threads and processes may search and change it; changes are visible at once.

    Attributes:
        folder: The index folder.
        model: Directory of the model.
        answers: Whether sentences are answers, embedded by `encode_document`, with queries embedded by `encode_query`.
        counts: Counts of all lines added by this object: lines, added, known, repeated, blank and unknown.

    Example:
        >>> from st_paragram import SearchIndex
        >>> index = SearchIndex.build(["Where is the station?", "We like cheese."], "lines.index", "p-sp-mini")
        >>> (hits,) = index.search(["¿Dónde está la estación?"], k=1)
        >>> hits[0].sentence
        'Where is the station?'
    """

    def __init__(self, folder: str | Path, model: str | Path | None = None) -> None:
        """Open a folder; `model` is the directory, name or hub id of its model, by default the recorded model."""
        self.folder = Path(folder)
        self.counts = Counter[str]()
        self._counting = threading.Lock()
        self._table = _opened(self.folder)
        about = _about(self._table)
        try:
            self.model = find(model or about["model"])
        except ModelDirectoryError as error:
            raise ModelDirectoryError(f"{folder}: built with {about['model']}; {error} (--model)") from error
        if fingerprint(self.model) != about["fingerprint"]:
            raise MiningError(f"{folder}: built with {about['model']}, not with {self.model}; use that model")
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
            source: Sentences, pairs of a sentence and its fields, or the path of a text. Repeated sentences are stored
                once. Sentences with fewer than two letters or digits, or without a known token, are left out.
            folder: Output folder.
            model: Directory, name or hub id of a model.
            metadata: Fields of all sentences, or of each sentence: text, numbers or booleans. For a repeated sentence,
                later values replace earlier values.
            answers: Sentences are answers to questions; for models with towers for both.
            overwrite: Replace an existing index.
        """
        folder, path = Path(folder), find(model)
        check = partial(check_output_folder, folder, overwrite, FOLDER, "search index", MiningError)
        with output_lock(folder, check), atomic_folder(folder) as new:
            encoder = load_encoder(path)
            if answers and not has_towers(encoder):
                raise SettingsError(f"{one_line(model)} has no towers for questions and answers; leave answers out")
            about = {"model": with_commit(str(model), path), "fingerprint": fingerprint(path), "answers": answers}
            vectors = pa.list_(pa.float16(), encoder.get_embedding_dimension())
            columns = {"vector": vectors, "text": pa.string(), "line": pa.int64()}
            schema = pa.schema(columns.items(), metadata={"st_paragram": json.dumps(about)})
            table = lancedb.connect(str(new)).create_table(TABLE, schema=schema)
            table.tags.create(WHOLE, table.version)
            made = cls(new, path)
            made.encoder = encoder
            if not made.add(source, metadata):
                where = f"{source}: " if isinstance(source, (str, Path)) else ""
                raise MiningError(f"{where}no sentences in {made.counts['lines']} lines; give one sentence per line")
        made.folder, made._table = folder, _opened(folder)
        return made

    @property
    def table(self) -> Any:  # noqa: ANN401
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
        return {field.name: str(field.type) for field in self.table.schema if field.name not in _OWN}

    @overload
    def search(  # type: ignore[overload-overlap] # a str is a sequence of str
        self, queries: str, k: int = 10, threshold: float | None = None, where: str | None = None
    ) -> list[Hit]: ...

    @overload
    def search(
        self, queries: Sequence[str], k: int = 10, threshold: float | None = None, where: str | None = None
    ) -> list[list[Hit]]: ...

    def search(
        self, queries: str | Sequence[str], k: int = 10, threshold: float | None = None, where: str | None = None
    ) -> list[Hit] | list[list[Hit]]:
        """Find the k sentences nearest to each query, best first, ties in the order of lines.

        Args:
            queries: Query texts, for a list of hits per query, or one text, for its hits. A query without a known
                token is refused.
            k: Number of sentences per query; all if there are fewer.
            threshold: Minimum cosine.
            where: Condition on fields, such as `lang in ('es', 'en') and year >= 2020`.
        """
        if isinstance(queries, str):
            return self.search([queries], k, threshold, where)[0]
        queries = list_of_texts(queries)
        if not queries:
            return []
        vectors = embed_queries(self.encoder, queries, "encode_query" if self.answers else "encode")
        return self.search_vectors(vectors, k, threshold, where)

    def search_vectors(
        self,
        vectors: Vectors,
        k: int = 10,
        threshold: float | None = None,
        where: str | None = None,
        seconds: float | None = None,
    ) -> list[list[Hit]]:
        """Search with query vectors, (q, D), from this index's model, of any length except 0; see `search`.

        A search that takes longer than `seconds` raises a TimeoutError.
        """
        end = None if seconds is None else time.monotonic() + seconds
        queries, dim = np.asarray(vectors, np.float32), self.table.schema.field("vector").type.list_size
        if queries.ndim != 2 or queries.shape[1] != dim:
            raise MiningError(f"{self.folder}: vectors have {dim} dimensions, but queries have shape {queries.shape}")
        if k < 1:
            raise SettingsError(f"k is {k}; give at least 1")
        queries, hits = unit_rows(queries, "queries"), list[list[Hit]]()
        size = max(1, int(len(self) ** 0.5))  # rows of a list of an approximate index, and number of its lists
        lists = max(20, size // 8, 10 * k // size)  # to visit; with a filter all, to find k
        condition = None if where is None else self._condition(where)
        for begin in range(0, len(queries), _QUERIES):
            some = queries[begin : begin + _QUERIES]

            def find(some: Vectors = some) -> Any:  # noqa: ANN401
                table = self.table
                query = table.search(list(some), vector_column_name="vector").distance_type("dot").limit(k)
                query = query.select([*table.schema.names, "_distance"]).minimum_nprobes(lists)
                timeout = None if end is None else timedelta(seconds=max(0.0, end - time.monotonic()))
                if condition is None:
                    return query.maximum_nprobes(lists).to_arrow(timeout=timeout)
                return query.maximum_nprobes(0).where(condition).to_arrow(timeout=timeout)

            with _refused(self.folder):
                found = _again(find)
            hits += _hits(some, found, -np.inf if threshold is None else threshold)
        return hits

    def add(self, sentences: Source, metadata: Fields | Iterable[Fields] | None = None) -> int:
        """Add sentences, as for `build`, and return how many are new.

        Line numbers continue from the last line. An existing sentence keeps its line and vector, and new fields replace
        fields of the same names. An addition that fails or is killed changes nothing.
        """
        with self._changing() as table:
            counts = self._fill(table, rows_of(sentences, metadata))
        with self._counting:
            self.counts.update(counts)
        return counts["added"]

    def delete(
        self, where: str | None = None, sentences: Source | None = None, lines: Iterable[int] | None = None
    ) -> int:
        """Delete sentences selected by a condition, sentences or line numbers; return how many were deleted."""
        if sum(each is not None for each in (where, sentences, lines)) != 1:
            raise SettingsError("select sentences to delete by exactly one of where, sentences and lines")
        if where is not None:
            filters = [self._condition(where)]
        elif sentences is not None:
            filters = _filters("text", [_quoted(text) for text, _ in rows_of(sentences, None)])
        else:
            filters = _filters("line", [str(int(line)) for line in lines or ()])
        with self._changing() as table, _refused(self.folder):
            return sum(int(table.delete(each).num_deleted_rows) for each in filters)

    def compact(self) -> None:
        """Rewrite small files as large files; remove deleted sentences and earlier versions from the disk."""
        with self._changing() as table:
            if int(table.list_versions()[-1]["metadata"]["total_deletion_file_rows"]):
                table.update(values_sql={"line": "line"})  # rewrites all rows: optimize leaves a few deleted rows
            table.optimize()
            table.tags.update(WHOLE, table.version)
            # Nobody else writes, so files that belong to no version are leftovers. An age of 0 would make LanceDB warn.
            table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    def approximate(self) -> None:
        """Group the vectors into lists by k-means, so that a search visits only some lists."""
        ivf_flat = require("lancedb.index", "search").IvfFlat
        with self._changing() as table:
            size = max(1, int(table.count_rows() ** 0.5))
            how = ivf_flat("dot", num_partitions=size, max_iterations=10, sample_rate=64)
            table.create_index("vector", config=how)

    def export(self, path: str | Path, overwrite: bool = False) -> None:
        """Write all rows to a Parquet file, with vectors as float32."""
        path, parquet = Path(path), require("pyarrow.parquet", "search")
        field = pa.field("vector", pa.list_(pa.float32(), self.table.schema.field("vector").type.list_size))
        with output_lock(path, partial(check_output, path, overwrite)), atomic(path) as handle, _refused(self.folder):
            rows = self.table.search().to_batches()
            with parquet.ParquetWriter(handle, rows.schema.set(0, field)) as writer:
                for batch in rows:
                    writer.write_batch(batch.set_column(0, field, batch["vector"].cast(field.type)))

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        """Give the table to one writer at a time; unfinished changes are undone by the next writer."""
        with locked(self.folder, wait=True):
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

    def _fill(self, table: Any, rows: Iterator[tuple[str, Fields]]) -> Counter[str]:  # noqa: ANN401
        """Add rows, block by block: new sentences, and existing sentences with further fields; return counts."""
        counts = Counter[str]()
        last = int((table.schema.field("line").metadata or {}).get(b"last", 0))
        method = "encode_document" if self.answers else "encode"
        while block := list(islice(rows, _ROWS)):
            lines = [(line, text, fields) for line, (text, fields) in enumerate(block, last + 1) if has_words(text)]
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
            column = pa.FixedSizeListArray.from_arrays(vectors.astype(np.float16).ravel(), vectors.shape[1])
            counts.update(lines=len(block), blank=len(block) - len(lines), repeated=len(lines) - len(given))
            counts.update(known=len(known), added=len(vectors), unknown=len(new) - len(vectors))
            new = new.filter(pa.array(understood)).append_column("vector", column)
            changed = pa.concat_tables([known, new] if fields else [new], promote_options="default")
            if len(changed):
                table.merge_insert("text").when_matched_update_all().when_not_matched_insert_all().execute(changed)
        table.update_field_metadata({"path": "line", "metadata": {"last": str(last)}})
        return counts


def _known(table: Any, texts: Any) -> Any:  # noqa: ANN401
    """Return the rows of the sentences that a table has."""
    few = ["true"] if len(texts) > _TEXTS else _filters("text", map(_quoted, texts.to_pylist())) or ["false"]
    found = pa.concat_tables(table.search().where(each).select(["text"]).with_row_id(True).to_arrow() for each in few)
    return table.take_row_ids(found["_rowid"].filter(compute.is_in(found["text"], texts)).to_pylist()).to_arrow()


def _filters(column: str, values: Iterable[str]) -> list[str]:
    """Yield conditions for blocks of a column's values, small enough for fast SQL parsing."""
    values = iter(dict.fromkeys(values))
    return [f"{column} in ({', '.join(some)})" for some in iter(lambda: list(islice(values, _TEXTS)), [])]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _columns(table: Any, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: ANN401
    """Make Arrow arrays of the fields of n sentences, (n,) each; add columns for new fields to the table."""
    types = {field.name: field.type for field in table.schema if field.name not in _OWN}
    columns = {}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if name not in types and (name in _OWN or not re.fullmatch(r"[^\W_][^.`]*", name)):
            raise SettingsError(f"field {short(name)}: use another name, without periods and backticks")
        try:
            column = pa.array([row.get(name) for row in rows])
        except (TypeError, ValueError, OverflowError) as error:
            raise SettingsError(f"field {name}: {one_line(error)}; give values of one type") from error
        kept = types.get(name, column.type)
        seen, wanted = str(column.type), str(kept)
        if seen not in _KINDS or (seen != wanted and (seen, wanted) not in _CAST):
            seen = f"a value is {seen}" + f", but earlier values are {wanted}" * (seen != wanted)
            raise SettingsError(f"field {name}: {seen}; give text, numbers or booleans of one type")
        columns[name] = column.cast(kept)
    if new := [pa.field(name, column.type) for name, column in columns.items() if name not in types]:
        table.add_columns(pa.schema(new))
    return columns


def describe(folder: Path) -> dict[str, Any]:
    """Describe an index for `st-paragram info`, without its model."""
    table = _opened(folder)
    columns = {field.name: str(field.type) for field in table.schema}
    how = "approximate" if table.list_indices() else "exact"
    found = {"name": folder.resolve().name, **_about(table), "sentences": table.count_rows()}
    return found | {"columns": columns, "search": how, "version": table.version}


def check(folder: Path) -> str:
    """Read all rows of an index; return their number in words."""
    with _refused(folder):
        rows = sum(batch.num_rows for batch in _opened(folder).search().to_batches())
    return f"all {rows:,} sentences can be read"


def _opened(folder: Path) -> Any:  # noqa: ANN401
    """Open the table of an index folder, at its last complete version."""
    if not (folder / FOLDER).is_dir():
        raise MiningError(f"{folder}: not a search index; build one with st-paragram index")
    with _refused(folder):
        table = lancedb.connect(str(folder)).open_table(TABLE)
        _again(lambda: table.checkout(WHOLE))
        return table


def _again(ask: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Query a table, several times if a compaction removes the files of its version meanwhile."""
    for _ in range(_TRIES):
        try:
            return ask()
        except (RuntimeError, ValueError) as error:
            if not re.search("(?i)not found|no longer exists", str(error)):
                raise
    return ask()


def _about(table: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the metadata recorded when an index was built."""
    about: dict[str, Any] = json.loads(table.schema.metadata[b"st_paragram"])
    return about


def _hits(queries: Vectors, found: Any, threshold: float) -> list[list[Hit]]:  # noqa: ANN401
    """Return the hits of each query, with exact cosines, since LanceDB rounds queries to float16."""
    numbers = found["query_index"].to_numpy() if len(queries) > 1 else np.zeros(len(found), np.int64)
    rows = found["vector"].combine_chunks().flatten().to_numpy().astype(np.float32).reshape(-1, queries.shape[1])
    scores = np.einsum("nd,nd->n", queries[numbers], rows) / np.linalg.norm(rows, axis=1)
    fields = found.select([name for name in found.schema.names if name not in _OWN]).to_pylist()
    lines, texts, hits = found["line"].to_pylist(), found["text"].to_pylist(), [list[Hit]() for _ in queries]
    for row in np.lexsort([lines, -scores]).tolist():
        if scores[row] >= threshold:
            values = {name: value for name, value in fields[row].items() if value is not None}
            hits[numbers[row]].append(Hit(min(float(scores[row]), 1.0), lines[row], texts[row], values))
    return hits


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    """Turn LanceDB's errors into one line without Rust source locations."""
    try:
        yield
    except (ValueError, RuntimeError, OSError, LookupError, TypeError) as error:
        reason = one_line(re.split(r", /\S+\.rs:\d", str(error))[0].removeprefix("Invalid input, "))
        if "Query timeout" in reason:
            raise TimeoutError(reason) from error
        raise MiningError(f"{folder}: {reason}") from error
