"""Tables of the encoders of ACL 2019 side by side: text to vectors, and training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from harness.options import Options
from harness.processes import Peer
from harness.results import Measure, Table
from harness.section_encode import arguments
from harness.timing import interleave, rows
from harness.units import Unit
from st_paragram.learning.training.settings import Encoder

ENCODERS: dict[Encoder, str] = {"sp": "SP", "word": "Word", "trigram": "Trigram", "blstm": "BLSTM-SP"}
_DIM, _HIDDEN = 300, 150  # the paper's


def units(options: Options) -> Iterator[Unit]:
    """Text to vectors on one thread, then training."""
    yield Unit("encoders-encode", partial(encode_table, options))
    yield Unit("encoders-train", partial(train_table, options))


def encode_table(options: Options) -> Table:
    """Text to vectors."""
    inputs = options.inputs()
    few = max(64, options.count // 20)
    peers = []
    for encoder, name in ENCODERS.items():
        model = inputs.encoder_model(encoder, options.vocab_size, _DIM, _HIDDEN)
        count = few if encoder == "blstm" else options.count
        values = arguments(options, 1, count) | {"model": str(model)}
        peers.append(Peer(name, "encode", "native", values, 1, note=f"timed on {count:,} sentences"))
    table_rows = rows(interleave(peers, options.rounds, title="encoders, encode"), memory=True)
    return Table(
        "encoders-encode",
        "The encoders of ACL 2019: text to vectors, 1 thread",
        "sentences/s",
        Measure.RATE,
        table_rows,
        ENCODERS["sp"],
        notes=[
            f"Random models, {_DIM} components, {options.vocab_size:,} pieces or 200,000 words or trigrams at most."
        ],
    )


def train_table(options: Options) -> Table:
    """Pairs a second of whole trainers, and of plain loops over the same ids."""
    peers = []
    for encoder, name in ENCODERS.items():
        values = _training(options, encoder)
        peers.append(Peer(name, "encoder-train", "ours", values, note="MegaBatchTrainer, mining included"))
        drawn = "the same, negatives drawn instead of mined"
        peers.append(Peer(f"{name}, nothing mined", "encoder-train", "unmined", values, note=drawn))
        loop = "lstm" if encoder == "blstm" else "sparse-adam"
        told = "torch's LSTM and fused Adam" if encoder == "blstm" else "embedding_bag and SparseAdam"
        peers.append(Peer(f"{name}, plain torch", "encoder-train", loop, values, note=f"{told}, nothing mined"))
    peers = [replace(peer, threads=1) for peer in peers]
    table_rows = rows(interleave(peers, options.rounds, title="encoders, train"), memory=True)
    return Table(
        "encoders-train",
        "The encoders of ACL 2019: training, 1 thread",
        "pairs/s",
        Measure.RATE,
        table_rows,
        ENCODERS["sp"],
        notes=[f"{_DIM} components (BLSTM-SP: {_HIDDEN} units a direction), batches of {options.batch_size} pairs."],
    )


def _training(options: Options, encoder: str) -> dict[str, Any]:
    """Arguments of `encoder_training.run`; a round of the BiLSTM has few steps, or it would take minutes."""
    steps = 2 if encoder == "blstm" else options.megabatch_size
    return {
        "encoder": encoder,
        "store": str(options.inputs().encoder_store(encoder, options.vocab_size)),
        "dim": _DIM,
        "hidden_dim": _HIDDEN,
        "batch_size": options.batch_size,
        "megabatch_size": steps,
        "steps": steps,
        "rounds": options.rounds + 2,  # a round of warm-up, and one that never ends
    }
