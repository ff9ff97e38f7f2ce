"""The LanceDB table of a search index.

An index folder holds the table `sentences`: `vector` (float16, length 1), `text`, `line` (from 1),
`_md5` (of the text) and a column per field. Its tag `whole` marks the version that readers see. A
lock allows one writer at a time to make new versions, and the tag moves when a change is complete.
LanceDB does not work after a fork: spawn new processes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from st_paragram.core.extras import require
from st_paragram.core.files import is_full_disk, naming_full_disk
from st_paragram.core.outputs import locked
from st_paragram.errors import MiningError, one_line
from st_paragram.tools.search.recall import Measurement

lancedb = require("lancedb", "search", "a search index")
pa = require("pyarrow", "search")

TABLE = "sentences"
FOLDER = f"{TABLE}.lance"  # folder of the table
HASH = "_md5"  # column by which an addition finds its texts; no field has this name
OWN_COLUMNS = ("vector", "text", "line", HASH, "query_index", "_distance", "_score")
_WHOLE = "whole"
_TRIES = 5  # attempts to read a table while others compact it


def create_table(folder: Path, dim: int | None, about: dict[str, Any]) -> None:
    """Create an empty table in an index folder; `about` is recorded."""
    columns = {
        "vector": pa.list_(pa.float16(), dim),
        "text": pa.string(),
        "line": pa.int64(),
        HASH: pa.binary(16),
    }
    schema = pa.schema(columns.items(), metadata={"st_paragram": json.dumps(about)})
    table = lancedb.connect(str(folder)).create_table(TABLE, schema=schema)
    table.tags.create(_WHOLE, table.version)


def open_table(folder: Path) -> Any:
    """Open the table of an index folder, at its last complete version."""
    if not (folder / FOLDER).is_dir():
        problem = "not a search index" if folder.exists() else "no such file or folder"
        raise MiningError(
            f"{folder}: {problem}; build an index with `st-paragram index FILE --output FOLDER`"
        )
    with lance_errors(folder):
        table = lancedb.connect(str(folder)).open_table(TABLE)
        update_table(table)
        return table


def update_table(table: Any) -> None:
    """Move to the last complete version."""
    retried(lambda: table.checkout(_WHOLE))


def retried(read: Callable[[], Any]) -> Any:
    """Read a table, several times if a compaction removes the files of its version meanwhile."""
    for _ in range(_TRIES):
        try:
            return read()
        except (RuntimeError, ValueError) as error:
            if not re.search("(?i)not found|no longer exists", str(error)):
                raise
    return read()


@contextmanager
def changing(folder: Path) -> Iterator[Any]:
    """Give the table to one writer at a time; the next writer undoes unfinished changes."""
    with locked(folder, wait=True), naming_full_disk(folder):
        table = open_table(folder)
        whole = table.version
        table.checkout_latest()
        if table.version != whole:
            table.restore(whole)
        yield table
        table.tags.update(_WHOLE, table.version)


def compact_table(table: Any) -> None:
    """Rewrite all rows in large files; remove earlier versions from the disk."""
    if int(table.list_versions()[-1]["metadata"]["total_deletion_file_rows"]):
        # rewrites all rows: optimize leaves a few deleted rows
        table.update(values_sql={"line": "line"})
    version = None
    # after an addition to an approximate index, LanceDB needs two rounds
    while table.version != version:
        version = table.version
        table.optimize()
    table.tags.update(_WHOLE, version)
    # Nobody else writes, so files that belong to no version are leftovers. An age of 0 would make
    # LanceDB warn.
    table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)


@contextmanager
def lance_errors(folder: Path) -> Iterator[None]:
    """Turn LanceDB's errors into one line without Rust source locations."""
    try:
        yield
    except TimeoutError:
        raise
    except (ValueError, RuntimeError, OSError, LookupError, TypeError) as error:
        if is_full_disk(error):
            raise MiningError(f"{folder}: no space left on the disk; free disk space") from error
        reason = one_line(re.split(r", /\S+\.rs:\d", str(error))[0].removeprefix("Invalid input, "))
        if "Query timeout" in reason:
            raise TimeoutError(reason) from error
        raise MiningError(f"{folder}: {reason}") from error


def about_table(table: Any) -> dict[str, Any]:
    """Return what was recorded when an index was built."""
    about: dict[str, Any] = json.loads(table.schema.metadata[b"st_paragram"])
    return about


def text_hashes(texts: Any) -> Any:
    """Return the MD5 digests of an Arrow array of texts."""
    digests = []
    for text in texts.to_pylist():
        digests.append(hashlib.md5(text.encode(), usedforsecurity=False).digest())
    return pa.array(digests, pa.binary(16))


def add_hashes(table: Any) -> None:
    """Add the column of hashes to a table of an earlier version of this package."""
    if HASH not in table.schema.names:
        table.add_columns({HASH: "arrow_cast(digest(text, 'md5'), 'FixedSizeBinary(16)')"})


def visible_columns(table: Any) -> list[str]:
    """Return the names of the columns without the hashes."""
    return [name for name in table.schema.names if name != HASH]


def field_types(table: Any) -> dict[str, Any]:
    """Return the Arrow types of the sentences' fields by name."""
    return {field.name: field.type for field in table.schema if field.name not in OWN_COLUMNS}


def indexed_columns(table: Any) -> list[str]:
    """Return "vector" if searches are approximate, and "text" if words are indexed."""
    return [index.columns[0] for index in table.list_indices()]


def dimension(table: Any) -> int:
    """Return the dimension of the vectors."""
    return int(table.schema.field("vector").type.list_size)


def column_note(table: Any, column: str, name: str) -> str | None:
    """Return a value that `write_note` stored; None if there is none."""
    notes = table.schema.field(column).metadata or {}
    note = notes.get(name.encode())
    return note.decode() if note else None


def write_note(table: Any, column: str, name: str, value: str) -> None:
    """Store a value in the table, with a column."""
    table.update_field_metadata({"path": column, "metadata": {name: value}})


def measurement_of(table: Any) -> Measurement | None:
    """Return the recall of an approximate index; None if it is exact or not measured."""
    note = column_note(table, "vector", "recall")
    return Measurement.from_json(note) if note else None


def describe_index(folder: Path) -> dict[str, Any]:
    """Describe an index for `st-paragram info`, without its model."""
    table = open_table(folder)
    indexed = indexed_columns(table)
    columns = {name: str(table.schema.field(name).type) for name in visible_columns(table)}
    description = {
        "name": folder.resolve().name,
        **about_table(table),
        "sentences": table.count_rows(),
        "columns": columns,
        "search": "approximate" if "vector" in indexed else "exact",
        "hybrid": "text" in indexed,
        "version": table.version,
    }
    measurement = measurement_of(table)
    if measurement is not None:
        description["recall"] = str(measurement)
    return description


def check_index(folder: Path) -> str:
    """Read all rows of an index, and check the hashes of texts; return their number in words."""
    count = 0
    with lance_errors(folder):
        for batch in open_table(folder).search().to_batches():
            if HASH in batch.schema.names and not batch[HASH].equals(text_hashes(batch["text"])):
                raise MiningError(
                    f"{folder}: a sentence differs from its hash, so additions may repeat"
                    " sentences; build the index again"
                )
            count += batch.num_rows
    return f"all {count:,} sentences can be read"
