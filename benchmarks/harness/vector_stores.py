"""Vectors into the stores of docs/integrations.md and out again, and how long each takes.

A store is a function of (a folder, vectors float32 (n, D) of length 1) that adds them all and returns a function from a
query (D,) to the number of the row that is nearest to it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require

Rows = NDArray[np.float32]
Search = Callable[[Rows], int]
_BATCH = 10_000  # rows that are added at a time


def faiss_flat(folder: Path, vectors: Rows) -> Search:
    """FAISS, exact, in memory."""
    faiss = require("faiss", "mining")
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return lambda query: int(index.search(query[None], 1)[1][0, 0])


def qdrant_local(folder: Path, vectors: Rows) -> Search:
    """Qdrant's local mode, exact, in memory."""
    client, models = (
        require("qdrant_client", "examples").QdrantClient(":memory:"),
        require("qdrant_client.models", "examples"),
    )
    settings = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("texts", vectors_config=settings)
    for start in range(0, len(vectors), _BATCH):
        part = vectors[start : start + _BATCH]
        client.upsert("texts", models.Batch(ids=list(range(start, start + len(part))), vectors=part.tolist()))
    return lambda query: int(client.query_points("texts", query.tolist(), limit=1).points[0].id)


def lance(folder: Path, vectors: Rows) -> Search:
    """LanceDB without an index, exact, on disk."""
    arrow = require("pyarrow", "examples")
    column = arrow.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
    rows = arrow.table({"number": np.arange(len(vectors)), "vector": column})
    table = require("lancedb", "examples").connect(str(folder / "lance")).create_table("texts", rows)
    return lambda query: int(table.search(query).distance_type("cosine").limit(1).to_list()[0]["number"])


def sqlite_vec(folder: Path, vectors: Rows) -> Search:
    """sqlite-vec, exact, on disk."""
    folder.mkdir(exist_ok=True)
    connection = sqlite3.connect(folder / "texts.db")
    connection.enable_load_extension(True)
    require("sqlite_vec", "examples").load(connection)
    dimension = vectors.shape[1]
    connection.execute(f"create virtual table vectors using vec0(vector float[{dimension}] distance_metric=cosine)")
    with connection:
        rows = ((number, row.tobytes()) for number, row in enumerate(vectors))
        connection.executemany("insert into vectors (rowid, vector) values (?, ?)", rows)
    sql = "select rowid from vectors where vector match ? and k = 1"
    return lambda query: int(connection.execute(sql, [query.tobytes()]).fetchone()[0])


STORES = {"FAISS, IndexFlatIP": faiss_flat, "Qdrant, local": qdrant_local, "LanceDB": lance, "sqlite-vec": sqlite_vec}


def can_run(name: str) -> bool:
    """Whether this Python can: not all of them load extensions of SQLite."""
    return name != "sqlite-vec" or hasattr(sqlite3.Connection, "enable_load_extension")


def measure(name: str, folder: Path, vectors: Rows, queries: Rows) -> list[str]:
    """A row of the table: name, seconds to add all vectors, ms a query, how often it found the nearest."""
    STORES[name](folder / "first", vectors[:100])  # libraries are imported, and what they do once is done
    start = time.perf_counter()
    search = STORES[name](folder, vectors)
    seconds = time.perf_counter() - start
    times, found = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(search(query))
        times.append(1000 * (time.perf_counter() - start))
    best = (queries @ vectors.T).max(axis=1)
    true = np.einsum("qd,qd->q", queries, vectors[found]) > best - 1e-5  # equally near ones will do
    return [name, f"{seconds:.1f}", f"{median(times):.0f} ({min(times):.0f})", f"{true.sum()} of {len(queries)}"]
