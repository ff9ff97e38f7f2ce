"""Tables of what the machine can do, and of the share of it that is reached."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np

from harness.options import Options
from harness.processes import Peer, PeerProcess
from harness.report import SHARE
from harness.results import Measure, Row, Table
from harness.roofline import StepShape, Work, encoding, training_step
from harness.section_encode import arguments
from harness.section_train import ours
from harness.timing import interleave, rows
from harness.units import Unit
from st_paragram.core.data.pair_store import PairStore

LIMITS = {
    "product float32": "matrix product, float32",
    "product bfloat16": "matrix product, bfloat16",
    "copy": "memory, copied (read and written)",
    "read": "memory, read",
    "gather 1 KiB": "random rows of 1 KiB, gathered (read and written)",
    "gather 4 KiB": "random rows of 4 KiB, gathered (read and written)",
    "sum 1 KiB": "random rows of 1 KiB, sums of 16",
    "sum 4 KiB": "random rows of 4 KiB, sums of 16",
}


def units(options: Options) -> Iterator[Unit]:
    """Limits and shares, from the same rounds, for one thread and for all."""
    for threads in options.thread_counts():
        processes = cache(partial(_measure, options, threads))
        yield Unit(f"limits-{threads}-threads", partial(_limits_of, options, threads, processes))
        yield Unit(f"roofline-{threads}-threads", partial(_shares_of, options, threads, processes))


def _measure(options: Options, threads: int) -> list[PeerProcess]:
    """The limits, then our encoder and our training step."""
    look = Peer("ids to vectors", "lookup", "native", arguments(options, threads), threads)
    text = Peer("text to vectors", "encode", "native", arguments(options, threads), threads)
    step = Peer("training step", "train", "ours", ours(options), threads)
    exact = replace(step, name="training step, float32 mining", arguments=ours(options, mining_precision="float32"))
    peers = [*limit_peers(options, threads), look, text, step, exact]
    return interleave(peers, options.rounds, title=f"roofline, threads: {threads}")


def _limits_of(options: Options, threads: int, processes: Callable[[], list[PeerProcess]]) -> Table:
    return limits_table(options, threads, processes())


def _shares_of(options: Options, threads: int, processes: Callable[[], list[PeerProcess]]) -> Table:
    return roofline_table(options, threads, processes())


def limit_peers(options: Options, threads: int) -> list[Peer]:
    """One process for each limit."""
    size = {"mib": options.memory_mib}
    return [Peer(name, "limit", what, size, threads) for what, name in LIMITS.items()]


def limits_table(options: Options, threads: int, processes: list[PeerProcess]) -> Table:
    """What torch reaches on this machine."""
    table_rows = rows(processes[: len(LIMITS)])
    return Table(
        f"limits-{threads}-threads",
        f"Limits of the machine, threads: {threads}",
        "G operations/s or GB/s",
        Measure.RATE,
        table_rows,
        scale=1e-9,
        notes=[f"{options.memory_mib} MiB in huge pages; by torch alone."],
    )


def roofline_table(options: Options, threads: int, processes: list[PeerProcess]) -> Table:
    """Our encoder and our training step as shares of what the formulas allow."""
    measured = rows(processes)
    limits, works = measured[: len(LIMITS)], measured[len(LIMITS) :]
    row = "4 KiB" if options.dim * 4 > 2048 else "1 KiB"
    gather = max(_best(limits, LIMITS[f"gather {row}"]), _best(limits, LIMITS[f"sum {row}"]))
    product = max(_best(limits, LIMITS["product float32"]), _best(limits, LIMITS["product bfloat16"]))
    tokens = processes[len(LIMITS)].metadata.get("tokens", 0)
    encode_work = encoding(options.count, tokens, options.dim)
    shape = step_shape(PairStore(options.inputs().pair_store(options.vocab_size), check_ids=False), options)
    step_work = training_step(shape)
    for name, work, count in (
        ("ids to vectors", encode_work, options.count),
        ("text to vectors", encode_work, options.count),
        ("training step", step_work, options.batch_size),
        ("training step, float32 mining", step_work, options.batch_size),
    ):
        _fill(next(found for found in works if found.name == name), work, count, gather, product)
    return Table(
        f"roofline-{threads}-threads",
        f"Share of the machine's limit, threads: {threads}",
        "sentences/s or pairs/s",
        Measure.RATE,
        works,
        notes=[
            f"Limits measured in the same rounds: {gather / 1e9:.1f} GB/s for random rows of {row}, "
            f"{product / 1e9:,.0f} G operations/s of matrix products (the faster of float32 and bfloat16).",
            f"A mini-batch: {shape.tokens:,.0f} tokens, {shape.distinct_rows:,.0f} distinct rows, M = "
            f"{shape.megabatch_size}. Rows in demand stay in the caches, and mining in int8 is faster than any product "
            "measured here: a share above 100 % is possible. Text to vectors is bound by the tokeniser, not by memory.",
        ],
    )


def step_shape(store: PairStore, options: Options, samples: int = 20) -> StepShape:
    """Tokens and distinct rows of a mini-batch: means over random pairs, with those of other pairs as negatives."""
    rng = np.random.default_rng(0)
    mined, tokens, distinct = [], [], []
    for _ in range(samples):
        chosen = rng.integers(len(store), size=(2, options.batch_size))
        ids = [store.take(side, rows_)[0] for rows_ in chosen for side in ("a", "b")]
        mined.append(len(ids[0]) + len(ids[1]))
        tokens.append(sum(map(len, ids)))
        distinct.append(len(np.unique(np.concatenate(ids))))
    return StepShape(
        options.batch_size,
        options.dim,
        options.megabatch_size,
        mined_tokens=float(np.mean(mined)),
        tokens=float(np.mean(tokens)),
        distinct_rows=float(np.mean(distinct)),
    )


def _best(limits: list[Row], name: str) -> float:
    found = next(row for row in limits if row.name == name)
    return max((round_.value(Measure.RATE) for round_ in found.rounds), default=float("nan"))


def _fill(row: Row, work: Work, count: int, gather: float, product: float) -> None:
    """Add the columns of a share: `work` is that of `count` sentences or pairs."""
    if not row.rounds:
        return
    least = work.least_seconds(gather, product)
    seconds = statistics.median(round_.value(Measure.TIME) for round_ in row.rounds) * count
    row.columns |= {
        "KB each": f"{work.bytes / count / 1e3:,.1f}",
        "M operations each": f"{(work.operations + work.product_operations) / count / 1e6:,.2f}",
        "limit": f"{count / least:,.0f}",
        SHARE: f"{least / seconds:.0%}",
    }
