"""A search index: distinct sentences, their vectors and their fields in a table of LanceDB, made by one model.

The folder holds the table `sentences`: `vector` (float16, length 1), `text`, `line` (from 1) and a column per field.
Readers go on while somebody writes. A lock in the folder keeps it to one writer at a time, for the sake of the line
numbers. LanceDB does not survive a fork: start processes by spawning.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.encoding.find import find, with_commit
from st_paragram.core.encoding.models import TextEncoder, has_towers, load_encoder
from st_paragram.core.extras import require
from st_paragram.core.files import atomic, atomic_folder, check_output, check_output_folder, locked, output_lock, size
from st_paragram.errors import MiningError, ModelDirectoryError, ParagramError, SettingsError, one_line, short
from st_paragram.tools.search.embedding import Hit, Vectors, embed, embed_queries, unit_rows
from st_paragram.tools.search.rows import Fields, Source, has_words, rows_of, value_of

TABLE = "sentences.lance"  # the folder of the table
_OWN = ("vector", "text", "line", "query_index")
_ROWS, _TEXTS, _QUERIES = 1 << 16, 10_000, 64  # added, deleted and searched for at a time
_TYPES = {str: "string", int: "int64", float: "double", bool: "bool"}  # of Arrow
_KINDS = {"string": "text", "int64": "integer", "double": "number", "bool": "boolean"}
_TRIES = 5  # to read a table that others compact


class SearchIndex:
    """An index folder, opened. Threads and processes may search and change it; all see a change at once.

    Attributes:
        folder: The folder.
        model: Directory of its model.
        answers: Whether its sentences are answers, embedded by `encode_document`, and queries by `encode_query`.
        counts: What became of lines that were added here: lines, added, known, repeated, blank and unknown.
        effort: Lists of an approximate index that a query visits; None for a quarter of them.

    Example:
        >>> from st_paragram import SearchIndex
        >>> index = SearchIndex.build(["Where is the station?", "We like cheese."], "lines.index", "p-sp-mini")
        >>> index.search(["¿Dónde está la estación?"], k=1)[0][0].sentence
        'Where is the station?'
    """

    def __init__(self, folder: str | Path, model: str | Path | None = None) -> None:
        """Open a folder; `model` is the directory, name or hub id of its model, by default the recorded one."""
        self.folder, self.counts = Path(folder), Counter[str]()
        self.effort: int | None = None
        if not (self.folder / TABLE).is_dir():
            seen = "not a search index" if self.folder.exists() else "no such index folder"
            raise MiningError(f"{folder}: {seen}; build one with st-paragram index")
        with _refused(folder):
            self.table = _connected(self.folder).open_table(Path(TABLE).stem)
            about = json.loads((self.table.schema.metadata or {})[b"st_paragram"])
        try:
            self.model = find(model or about["model"])
        except ModelDirectoryError as error:
            raise ModelDirectoryError(f"{folder}: built with {about['model']}, and {error} (--model)") from error
        if fingerprint(self.model) != about["fingerprint"]:
            seen = f"built with {about['model']} ({about['fingerprint'][:8]}), not with {self.model}"
            raise MiningError(f"{folder}: {seen}; name that model")
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
            source: Sentences, perhaps each in a pair with its fields; or the path of a file with one per line. Equal
                sentences are one, and those without two letters or digits, or of no known token, are left out.
            folder: To create.
            model: Directory, name or hub id of a model.
            metadata: Fields of all sentences (`{"source": "wiki"}`), or one mapping for each of them. Values are text,
                numbers or booleans; of a repeated sentence, later values replace earlier ones.
            answers: Sentences are answers to questions; for models with towers for both.
            overwrite: Replace an index.
        """
        folder, path = Path(folder), find(model)
        check = partial(check_output_folder, folder, overwrite, TABLE, "search index", MiningError)
        with output_lock(folder, check), atomic_folder(folder) as new:
            database, encoder = _connected(new), load_encoder(path)
            if answers and not has_towers(encoder):
                seen = f"{one_line(model)} has no question and answer towers"
                raise SettingsError(f"{seen}; train a model with towers by st-paragram train muse, or leave out answers")
            about = {"model": with_commit(str(model), path), "fingerprint": fingerprint(path), "answers": answers}
            database.create_table(Path(TABLE).stem, schema=_schema(encoder.get_embedding_dimension(), about))
            made = cls(new, path)
            made.encoder = encoder
            made._fill(rows_of(source, metadata))
            if not len(made):
                raise MiningError(f"no sentences in {made.counts['lines']} lines; give one sentence per line")
        opened = cls(folder, path)
        opened.encoder, opened.counts = encoder, made.counts
        return opened

    def __len__(self) -> int:
        return int(self.table.count_rows())

    @cached_property
    def encoder(self) -> TextEncoder:
        """The model."""
        return load_encoder(self.model)

    @property
    def fields(self) -> dict[str, str]:
        """Kinds of the sentences' fields by name: text, integer, number or boolean."""
        types = {field.name: str(field.type) for field in self.table.schema if field.name not in _OWN}
        return {name: _KINDS.get(kind, kind) for name, kind in types.items()}

    @property
    def is_approximate(self) -> bool:
        """Whether searches visit some lists of vectors, and not all vectors."""
        return bool(self.table.list_indices())

    def search(
        self, queries: list[str], k: int = 10, threshold: float | None = None, where: str | None = None
    ) -> list[list[Hit]]:
        """The sentences nearest to each query, best first, of equally good ones the earlier.

        Args:
            queries: Texts; a text of which the model knows nothing is refused.
            k: Sentences per query; all there are if there are fewer.
            threshold: Minimum cosine.
            where: A condition on fields in SQL, such as `lang in ('es', 'en') and year >= 2020`.
        """
        if not queries:
            return []
        vectors = embed_queries(self.encoder, queries, "encode_query" if self.answers else "encode")
        return self.search_vectors(vectors, k, threshold, where)

    def search_vectors(
        self, vectors: Vectors, k: int = 10, threshold: float | None = None, where: str | None = None
    ) -> list[list[Hit]]:
        """The same for vectors of queries by this index's model, (q, D), of any length but 0."""
        vectors, schema = unit_rows(vectors, "queries"), self.table.schema
        dim = schema.field("vector").type.list_size
        if vectors.ndim != 2 or vectors.shape[1] != dim:
            raise MiningError(f"{self.folder}: holds vectors of {dim} components, and queries are {vectors.shape}")
        if k < 1:
            raise SettingsError(f"k is {k}; give at least 1")
        names, probes = [*schema.names, "_distance"], self.effort or max(20, int(len(self) ** 0.5) // 4)
        hits: list[list[Hit]] = []
        for begin in range(0, len(vectors), _QUERIES):
            some = vectors[begin : begin + _QUERIES]
            query = self.table.search(list(some), vector_column_name="vector").distance_type("dot").limit(k)
            query = query.select(names).minimum_nprobes(probes).maximum_nprobes(0)  # more lists if a filter leaves few
            with _refused(self.folder) if where is None else _refused(f"filter {short(where)}", SettingsError):
                found = _read(query if where is None else query.where(where))
            hits += _hits(some, found, -2 if threshold is None else threshold)
        return hits

    def add(self, sentences: Source, metadata: Fields | Iterable[Fields] | None = None) -> int:
        """Add sentences, as `build` takes them, and return how many are new.

        Lines are counted on from the last one. A sentence that is there keeps its line and vector, and its new fields
        replace those of the same names. An addition that fails is undone; of one that is killed, some may be there.
        """
        before = self.counts["added"]
        with self._changing():
            self._fill(rows_of(sentences, metadata))
        return self.counts["added"] - before

    def delete(
        self, where: str | None = None, sentences: Source | None = None, lines: Iterable[int] | None = None
    ) -> int:
        """Delete what a filter, sentences or line numbers name (one of the three); returns how many there were."""
        if sum(each is not None for each in (where, sentences, lines)) != 1:
            raise SettingsError("select what to delete by exactly one of where, sentences and lines")
        filters = [where]
        if sentences is not None:
            texts = sorted({"'" + text.replace("'", "''") + "'" for text, _ in rows_of(sentences, None)})
            filters = [f"text in ({','.join(texts[n : n + _TEXTS])})" for n in range(0, len(texts), _TEXTS)]
        elif lines is not None:
            numbers = [str(int(line)) for line in sorted(set(lines))]
            filters = [f"line in ({','.join(numbers[n : n + _TEXTS])})" for n in range(0, len(numbers), _TEXTS)]
        with self._changing(), _refused(f"filter {short(where)}" if where is not None else self.folder, SettingsError):
            return sum(int(self.table.delete(each).num_deleted_rows) for each in filters)

    def compact(self) -> None:
        """Rewrite small files as large ones, and remove deleted sentences and former versions from the disk."""
        with self._changing():  # a millisecond is LanceDB's "now" without a warning; nobody else writes under the lock
            self.table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    def approximate(self) -> None:
        """Sort the vectors into lists (k-means), a few of which a search then visits; for a million and more."""
        index = require("lancedb.index", "search", "an approximate index", "lancedb")
        lists = max(1, int(len(self) ** 0.5))
        with self._changing():
            self.table.create_index("vector", config=index.IvfFlat("dot", num_partitions=lists, sample_rate=64))

    def export(self, path: str | Path, overwrite: bool = False) -> None:
        """Write all rows to a Parquet file, with vectors as float32."""
        import pyarrow as pa
        from pyarrow import parquet

        path = Path(path)
        vectors = pa.list_(pa.float32(), self.table.schema.field("vector").type.list_size)
        with output_lock(path, partial(check_output, path, overwrite)), atomic(path) as handle, _refused(self.folder):
            batches = self.table.search().to_batches()
            schema = batches.schema.set(0, pa.field("vector", vectors))
            with parquet.ParquetWriter(handle, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch.set_column(0, schema.field(0), batch["vector"].cast(vectors)))

    def describe(self) -> dict[str, Any]:
        """What LanceDB knows, for `st-paragram info`."""
        about = json.loads(self.table.schema.metadata[b"st_paragram"])
        return {
            "name": self.folder.resolve().name,
            **about,
            "sentences": len(self),
            "dimension": self.table.schema.field("vector").type.list_size,
            "fields": self.fields,
            "search": "approximate" if self.is_approximate else "exact",
            "version": self.table.version,
            "versions": len(self.table.list_versions()),
            "bytes": size(self.folder),
        }

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Keep other writers out; what fails is undone."""
        with locked(self.folder, wait=True):
            before = self.table.version
            try:
                yield
            except BaseException:
                if self.table.version != before:
                    self.table.restore(before)
                raise

    def _fill(self, rows: Iterator[tuple[str, Fields]]) -> None:
        """Add rows, block by block: fields to sentences that are there, then new sentences."""
        import pyarrow as pa
        from pyarrow import compute

        last = int((self.table.schema.field("line").metadata or {}).get(b"last", 0))
        while block := list(islice(rows, _ROWS)):
            given: dict[str, tuple[int, dict[str, Any]]] = {}  # line and fields by sentence
            for line, (text, fields) in enumerate(block, last + 1):
                if has_words(text):
                    given.setdefault(text, (line, {}))[1].update(_values(fields, line))
                else:
                    self.counts["blank"] += 1
            last += len(block)
            self.counts["lines"] += len(block)
            types = self._types(given.values())
            self.table.update_field_metadata({"path": "line", "metadata": {"last": str(last)}})
            texts = _read(self.table.search().select(["text"]))["text"]
            known = compute.filter(texts, compute.is_in(texts, pa.array(list(given), "string"))).to_pylist()
            self._update({text: given.pop(text)[1] for text in known}, types)
            self.counts["known"] += len(known)
            vectors, understood = embed(self.encoder, list(given), "encode_document" if self.answers else "encode")
            new = [(text, *given[text]) for text, each in zip(given, understood.tolist(), strict=True) if each]
            self.counts.update(added=len(new), unknown=len(given) - len(new))
            if new:
                components, dim = pa.array(vectors.astype(np.float16).ravel()), vectors.shape[1]
                columns = {
                    "vector": pa.FixedSizeListArray.from_arrays(components, dim),
                    "text": [text for text, _, _ in new],
                    "line": pa.array([line for _, line, _ in new], "int64"),
                }
                fields = {n: pa.array([values.get(n) for _, _, values in new], kind) for n, kind in types.items()}
                self.table.add(pa.table(columns | fields))
        repeated = ("added", "known", "blank", "unknown")
        self.counts["repeated"] = self.counts["lines"] - sum(self.counts[name] for name in repeated)

    def _update(self, fields: dict[str, dict[str, Any]], types: dict[str, str]) -> None:
        """Give sentences other fields; one update for all that get fields of the same names, as it sets them all."""
        import pyarrow as pa

        alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for text, values in fields.items():
            alike[tuple(sorted(values))].append(text)
        for names, texts in alike.items():
            if names:
                columns = {name: pa.array([fields[text][name] for text in texts], types[name]) for name in names}
                self.table.merge_insert("text").when_matched_update_all().execute(pa.table({"text": texts} | columns))

    def _types(self, rows: Iterable[tuple[int, dict[str, Any]]]) -> dict[str, str]:
        """Arrow types of all fields; new ones get a column."""
        import pyarrow as pa

        types = {field.name: str(field.type) for field in self.table.schema if field.name not in _OWN}
        new: dict[str, str] = {}
        for line, values in rows:
            for name, value in values.items():
                kind = _TYPES[type(value)]
                if name not in types and (name in _OWN or not re.fullmatch(r"[^\W_][^.`]*", name)):
                    raise SettingsError(f"field {short(name)}: use another name, without full stops and backticks")
                before = types.get(name) or new.setdefault(name, kind)
                if name in new and {before, kind} == {"int64", "double"}:
                    new[name] = "double"
                elif before != kind and (before, kind) != ("double", "int64"):
                    seen = f"line {line}: {short(value)} is {_KINDS[kind]}, and field {name} {_KINDS.get(before, before)}"
                    raise SettingsError(f"{seen}; give values of one kind, or another name")
        if new:
            self.table.add_columns(pa.schema(list(map(pa.field, new, new.values()))))
        return types | new


def _values(fields: Fields, line: int) -> dict[str, Any]:
    """The values that an index keeps of a sentence's fields."""
    try:
        values = {str(name): value_of(value) for name, value in fields.items()}
    except SettingsError as error:
        raise SettingsError(f"line {line}: {error}") from error
    return {name: value for name, value in values.items() if value is not None}


def _connected(folder: Path) -> Any:  # noqa: ANN401
    lancedb = require("lancedb", "search", "a search index", "lancedb")
    return lancedb.connect(str(folder), read_consistency_interval=timedelta(0))


def _schema(dim: int | None, about: dict[str, Any]) -> Any:  # noqa: ANN401
    import pyarrow as pa

    columns = {"vector": pa.list_(pa.float16(), dim), "text": pa.string(), "line": pa.int64()}
    return pa.schema(columns.items(), metadata={"st_paragram": json.dumps(about)})


def _read(query: Any) -> Any:  # noqa: ANN401
    """An Arrow table of what a query finds; again, if a compaction removed the files of its version meanwhile."""
    for _ in range(_TRIES):
        try:
            return query.to_arrow()
        except RuntimeError as error:
            if "Not found" not in str(error):
                raise
    return query.to_arrow()


def _hits(queries: Vectors, found: Any, threshold: float) -> list[list[Hit]]:  # noqa: ANN401
    """Hits of each query, with exact cosines: LanceDB rounds queries to float16."""
    numbers = found["query_index"].to_numpy() if len(queries) > 1 else np.zeros(len(found), np.int64)
    rows = found["vector"].combine_chunks().flatten().to_numpy().astype(np.float32).reshape(len(found), -1)
    scores = np.einsum("nd,nd->n", queries[numbers], rows) / np.linalg.norm(rows, axis=1)
    names = [name for name in found.schema.names if name not in (*_OWN, "_distance")]
    values, lines, texts = found.select(names).to_pylist(), found["line"].to_pylist(), found["text"].to_pylist()
    hits: list[list[Hit]] = [[] for _ in queries]
    for row in np.lexsort([found["line"].to_numpy(), -scores]).tolist():
        if scores[row] >= threshold:
            fields = {name: value for name, value in values[row].items() if value is not None}
            hits[numbers[row]].append(Hit(min(float(scores[row]), 1.0), lines[row], texts[row], fields))
    return hits


@contextmanager
def _refused(what: object, kind: type[ParagramError] = MiningError) -> Iterator[None]:
    """Turn what LanceDB raises into one line, without its places in Rust."""
    try:
        yield
    except (ValueError, RuntimeError, OSError, LookupError, TypeError) as error:
        reason = re.split(r", /\S+\.rs:\d", str(error))[0].removeprefix("lance error: ").removeprefix("Invalid input, ")
        raise kind(f"{what}: {one_line(reason)}") from error
