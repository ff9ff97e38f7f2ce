"""Tables of loading a model, of encoding one sentence at a time, and one sentence over and over."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import cache

from harness.speed import loading
from harness.speed.loading import REPEATS
from harness.speed.options import Options
from harness.speed.peers import Peer, PeerProcess, one_shot, rows
from harness.speed.results import Measure, Round, Table, Unit
from harness.speed.section_encode import OURS, arguments, chosen

_SINGLE_SENTENCES = 500


def units(options: Options) -> Iterator[Unit]:
    """Three tables of the same processes."""

    @cache
    def measured() -> list[PeerProcess]:
        few = arguments(options, 1, min(_SINGLE_SENTENCES, options.count))
        peers = [
            Peer(OURS, loading.run, "light", few, note="Encoder(dir)"),
            Peer("st_paragram.load", loading.run, "native", few, note="st_paragram.load(dir)"),
            Peer("stock export", loading.run, "stock", few, note="SentenceTransformer(dir)"),
            Peer("model2vec", loading.run, "model2vec", few, note="StaticModel of the same weights"),
        ]
        return one_shot(chosen(options, peers, 1), options.rounds, warm_up=1, title="load")

    yield Unit("load", lambda: load_table(measured()))
    yield Unit("single-sentence", lambda: single_table(measured()))
    yield Unit("repeated-sentence", lambda: repeated_table(measured()))


def load_table(processes: list[PeerProcess]) -> Table:
    """Seconds from a folder to a model, libraries imported before."""
    table_rows = rows(processes, memory=True)
    for row, process in zip(table_rows, processes, strict=True):
        if row.rounds:
            for heading, name in (("importing libraries, s", "import"), ("first sentence, ms", "first")):
                value = statistics.median(process.metadata[f"{name}_seconds"]) * (1e3 if "ms" in heading else 1)
                row.columns[heading] = f"{value:.3g}"
    return Table(
        "load",
        "Loading a model, beyond importing the libraries",
        "s",
        Measure.TIME,
        table_rows,
        OURS,
        notes=[
            "A new process each time, 1 thread; the files are in the page cache, and a process before opened the model."
        ],
    )


def single_table(processes: list[PeerProcess]) -> Table:
    """Milliseconds for one sentence: a round is the median over the sentences of a process."""
    table_rows = rows(processes)
    for row, process in zip(table_rows, processes, strict=True):
        if row.rounds:
            row.rounds = [Round(seconds, 1) for seconds in process.metadata["median_seconds"]]
            row.columns["95th percentile, ms"] = f"{1e3 * statistics.median(process.metadata['p95_seconds']):.3f}"
            row.note = "encode([sentence])"
    return Table(
        "single-sentence",
        "One sentence at a time, 1 thread",
        "ms",
        Measure.TIME,
        table_rows,
        OURS,
        scale=1e3,
        notes=["Each round is the median over the sentences of a new process, the first sentence left out."],
    )


def repeated_table(processes: list[PeerProcess]) -> Table:
    """Microseconds for a sentence that was met before: a round is the median over the calls of a process."""
    table_rows = rows(processes)
    for row, process in zip(table_rows, processes, strict=True):
        if row.rounds:
            row.rounds = [Round(seconds, 1) for seconds in process.metadata["repeated_seconds"]]
            row.note = "encode([sentence])"
    return Table(
        "repeated-sentence",
        "The same sentence again and again, 1 thread",
        "µs",
        Measure.TIME,
        table_rows,
        OURS,
        scale=1e6,
        notes=[f"Each round is the median of {REPEATS:,} calls in a new process."],
    )
