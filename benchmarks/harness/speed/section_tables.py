"""Tables of means: rows of random embedding tables of every type, without the way from text to ids."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from harness.speed.options import Options
from harness.speed.peers import Channel, Peer, interleave, rows
from harness.speed.results import Measure, Table, Unit

from st_paragram.core.encoding.table import Table as EmbeddingTable
from st_paragram.core.encoding.table import TableType

_REFERENCE = TableType.INT8.value
_LENGTH = 20  # tokens of a sentence, on average
_DRAWS = {"frequent": "as words occur in text, the most frequent ones most often", "any": "any row as often as another"}


def units(options: Options) -> Iterator[Unit]:
    """One unit a way to draw rows."""
    for draw in _DRAWS:
        yield Unit(f"means-{draw}", partial(means_table, options, draw))


def means_table(options: Options, draw: str) -> Table:
    """Means of rows, tables of all types side by side."""
    arguments = {"rows": options.vocab_size, "dim": options.dim, "count": options.count, "draw": draw}
    kinds = [kind for kind in TableType if kind.value == _REFERENCE or options.wanted(kind.value)]
    peers = [Peer(kind.value, run, kind.value, arguments) for kind in kinds]
    table_rows = rows(interleave(peers, options.rounds, title=f"means, {draw}"), memory=True)
    size = f"{options.vocab_size:,} rows of {options.dim:,} components"
    return Table(
        f"means-{draw}",
        f"Means of rows of a table ({draw}), 1 thread",
        "means/s",
        Measure.RATE,
        table_rows,
        _REFERENCE,
        notes=[f"{options.count:,} means of {_LENGTH} rows or so out of {size}, drawn {_DRAWS[draw]}."],
    )


def run(what: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Take means of a table of the type `what`, round by round."""
    rng = np.random.default_rng(0)
    count, row_count = arguments["count"], arguments["rows"]
    table = random_table(TableType(what), (row_count, arguments["dim"]), rng)
    offsets = np.concatenate([[0], np.cumsum(rng.poisson(_LENGTH, count))]).astype(np.int64)
    ranks = rng.random(offsets[-1])
    ranks = row_count**ranks - 1 if arguments["draw"] == "frequent" else row_count * ranks  # Zipf's law
    ids = rng.permutation(row_count).astype(np.int32)[ranks.astype(np.int64).clip(max=row_count - 1)]
    out = np.empty((count, table.dimension), np.float32)
    channel.ready()
    while channel.wait():
        started = time.perf_counter()
        table.fill_means(ids, offsets, out, False, 1)
        channel.report(time.perf_counter() - started, count)


def random_table(kind: TableType, shape: tuple[int, int], rng: np.random.Generator) -> EmbeddingTable:
    """A table of any numbers; for int4 the second number of the shape is even."""
    if kind in (TableType.FLOAT32, TableType.FLOAT16):
        return EmbeddingTable(rng.random(shape, np.float32).astype(kind.value))
    scales = rng.random(shape[0], np.float32)
    if kind is TableType.INT8:
        return EmbeddingTable(rng.integers(-127, 128, shape, np.int8), scales)
    return EmbeddingTable(rng.integers(0, 256, (shape[0], shape[1] // 2), np.uint8), scales)
