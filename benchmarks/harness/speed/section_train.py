"""Tables of training."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from harness.speed import training
from harness.speed.options import Options
from harness.speed.peers import Peer, interleave, rows
from harness.speed.results import Measure, Table, Unit
from harness.speed.section_encode import OURS, chosen

from st_paragram.core.pair_store import PairStore

_PLAIN = {"ST_PARAGRAM_NATIVE": "0"}
_STOCK_PAIRS = 60_000  # decoded to text for the other trainers: as many as they ever see


def units(options: Options) -> Iterator[Unit]:
    """Mini-batches at the largest M, then a whole training."""
    for threads in options.thread_counts():
        yield Unit(f"train-{threads}-threads", partial(train_table, options, threads))
    yield Unit("train-run", partial(run_table, options, options.thread_counts()[-1]))


def ours(options: Options, **others: Any) -> dict[str, Any]:  # noqa: ANN401
    """Arguments of our trainer; see `training_peers.run`. A round is one mega-batch unless `steps` is given."""
    values = {
        "store": None,
        "dim": options.dim,
        "batch_size": options.batch_size,
        "megabatch_size": options.megabatch_size,
        "mining_precision": "auto",
        "device": options.device,
        **others,
    }
    values["store"] = values["store"] or str(options.inputs().pair_store(options.vocab_size))
    values.setdefault("steps", values["megabatch_size"])
    values["total_steps"] = values["steps"] * (options.rounds + 2)  # a round of warm-up, and one that never ends
    return values


def stock(options: Options, batch_size: int) -> dict[str, Any]:
    """Arguments of a stock trainer: rounds of as many pairs as ours."""
    inputs = options.inputs()
    steps = max(1, options.megabatch_size * options.batch_size // batch_size)
    return {
        "store": str(inputs.pair_store(options.vocab_size)),
        "dim": options.dim,
        "batch_size": batch_size,
        "steps": steps,
        "total_steps": steps * (options.rounds + 2),
        "device": options.device,
        "tokenizer": str(inputs.model_directory(options.vocab_size, options.dim) / "tokenizer.json"),
        "pairs": _STOCK_PAIRS,
    }


def train_table(options: Options, threads: int) -> Table:
    """Pairs a second of whole trainers."""
    mega, large = options.batch_size * options.megabatch_size, min(1024, options.batch_size * options.megabatch_size)
    default, exact = ours(options), ours(options, mining_precision="float32")
    ranking, margin = stock(options, options.batch_size), "MegaBatchMarginLoss"
    one = "not mini-batched (StaticEmbedding cannot be); one optimizer step for each batch"
    peers = [
        Peer(OURS, training.run, "ours", default, note="MegaBatchTrainer, its defaults"),
        Peer("st_paragram, float32 mining", training.run, "ours", exact, note="mining_precision float32"),
        Peer(
            "st_paragram, torch only",
            training.run,
            "ours",
            default,
            environment=_PLAIN,
            note="torch, dense Adam",
        ),
        Peer("MultipleNegativesRankingLoss", training.run, "multiple-negatives", ranking, note="stock trainer"),
        *(
            Peer(f"{margin}, batch {size:,}", training.run, "megabatch-margin", stock(options, size), note=one)
            for size in sorted({large, mega})
        ),
    ]
    processes = interleave(chosen(options, peers, threads), options.rounds, title=f"train, threads: {threads}")
    table_rows = rows(processes, memory=True)
    return Table(
        f"train-{threads}-threads",
        f"Training, whole loop, threads: {threads}",
        "pairs/s",
        Measure.RATE,
        table_rows,
        OURS,
        notes=[
            f"Rounds of {mega:,} pairs, dim {options.dim:,}. Ours: M = {options.megabatch_size} from the start, batch "
            f"{options.batch_size}. MultipleNegativesRankingLoss: batch {options.batch_size}. The others are "
            "StaticEmbedding with sentence-transformers' SentenceTransformerTrainer, which tokenises as it goes.",
        ],
    )


def run_table(options: Options, threads: int) -> Table:
    """Whole training runs in which M grows to its largest."""
    path = options.inputs().pair_store(options.vocab_size)
    pairs = len(PairStore(path))
    steps = int(options.anneal_interval * options.megabatch_size * 1.02)
    settings = {
        "dim": options.dim,
        "epochs": steps * options.batch_size / pairs,
        "batch_size": options.batch_size,
        "megabatch_size": options.megabatch_size,
        "anneal_interval": options.anneal_interval,
        "device": options.device,
    }
    peer = Peer(OURS, training.run_whole, "", {"store": str(path), "settings": settings}, threads)
    table_rows = rows(interleave([peer], options.rounds, warm_up=0, title="train, whole runs"), memory=True)
    return Table(
        "train-run",
        f"A training as the recipes run it, M growing from 1 to {options.megabatch_size}, threads: {threads}",
        "pairs/s",
        Measure.RATE,
        table_rows,
        OURS,
        notes=[
            f"{steps:,} steps, M grows every {options.anneal_interval} steps (the paper: 150), so that every M counts "
            "alike in the mean. Time of the steps; evaluation and checkpoints are left out.",
        ],
    )
