"""Training of each encoder on its own ids of the same pairs, and plain torch loops on the same batches beside it."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.channel import Channel
from harness.training_peers import rounds_callback
from st_paragram.core.data.pair_store import PairStore
from st_paragram.learning.losses.margin_hard_negative import margin_loss
from st_paragram.learning.training.settings import TrainingSettings

_MARGIN, _RATE = 0.4, 1e-3


def run(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Train, and stop after each round's steps until the next round is asked for.

    Args:
        peer: "ours", "unmined" (ours with negatives that are drawn), "sparse-adam" (means of embeddings by
            `embedding_bag`) or "lstm" (a padded, packed LSTM).
        arguments: `encoder`, `store`, `dim`, `hidden_dim`, `batch_size`, `megabatch_size` and `steps` of a round.
        channel: to the benchmark. Work is counted in pairs.
    """
    if peer in ("ours", "unmined"):
        _ours("random" if peer == "unmined" else "opposite", arguments, channel)
    else:
        _plain(peer, arguments, channel)


def _ours(negatives: Literal["opposite", "random"], arguments: dict[str, Any], channel: Channel) -> None:
    from pathlib import Path

    from st_paragram.families.psp.objective import new_model, trainer

    store = PairStore(arguments["store"], check_ids=False)
    pairs = arguments["batch_size"] * arguments["steps"] * arguments["rounds"]
    settings = TrainingSettings(
        encoder=arguments["encoder"],
        dim=arguments["dim"],
        hidden_dim=arguments["hidden_dim"],
        epochs=pairs / len(store),
        batch_size=arguments["batch_size"],
        megabatch_size=arguments["megabatch_size"],
        anneal_interval=0,
        negatives=negatives,
        device="cpu",
    )
    with tempfile.TemporaryDirectory() as folder:
        training = trainer(new_model(store, settings), store, settings, Path(folder))
        training.args.save_strategy = "no"
        training.add_callback(rounds_callback(training, arguments["steps"], arguments["batch_size"], channel))
        channel.ready()
        if channel.wait():
            training.train()


def _plain(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Four columns a batch, as many texts as our steps have; negatives are drawn, so nothing is mined."""
    store = PairStore(arguments["store"], check_ids=False)
    torch.manual_seed(0)
    step = (_sparse_adam if peer == "sparse-adam" else _lstm)(len(store.tokenizer()), arguments)
    batches = _batches(store, arguments["batch_size"])
    for _ in range(2):
        step(next(batches))
    channel.ready()
    while channel.wait():
        ready = list(itertools.islice(batches, arguments["steps"]))
        started = time.perf_counter()
        for batch in ready:
            step(batch)
        channel.report(time.perf_counter() - started, arguments["steps"] * arguments["batch_size"])


def _batches(store: PairStore, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Ids and offsets of s, t, negatives of s, negatives of t, one after another."""
    rng = np.random.default_rng(0)
    while True:
        rows, others = (rng.integers(0, len(store), size) for _ in range(2))
        parts = [store.take(side, which) for side, which in (("a", rows), ("b", rows), ("b", others), ("a", others))]
        counts = np.concatenate([np.diff(offsets) for _, offsets in parts])
        offsets = np.concatenate([[0], np.cumsum(counts)])
        yield torch.from_numpy(np.concatenate([ids for ids, _ in parts])), torch.from_numpy(offsets)


def _loss(means: Tensor) -> Tensor:
    """Of four columns one after another."""
    s, t, of_s, of_t = means.chunk(4)
    return margin_loss(s, t, of_s, of_t, _MARGIN)


def _sparse_adam(rows: int, arguments: dict[str, Any]) -> Callable[[tuple[Tensor, Tensor]], None]:
    table = nn.Parameter(torch.randn(rows, arguments["dim"]))
    optimizer = torch.optim.SparseAdam([table], _RATE)

    def step(batch: tuple[Tensor, Tensor]) -> None:
        optimizer.zero_grad()
        means = F.embedding_bag(batch[0], table, batch[1], mode="mean", include_last_offset=True, sparse=True)
        _loss(means).backward()
        optimizer.step()

    return step


def _lstm(rows: int, arguments: dict[str, Any]) -> Callable[[tuple[Tensor, Tensor]], None]:
    embedding = nn.Embedding(rows, arguments["dim"])
    lstm = nn.LSTM(arguments["dim"], arguments["hidden_dim"], bidirectional=True, batch_first=True)
    optimizer = torch.optim.Adam([*embedding.parameters(), *lstm.parameters()], _RATE, fused=True)

    def step(batch: tuple[Tensor, Tensor]) -> None:
        optimizer.zero_grad()
        counts = batch[1].diff()
        padded = nn.utils.rnn.pad_sequence(list(batch[0].split(counts.tolist())), batch_first=True)
        packed = nn.utils.rnn.pack_padded_sequence(embedding(padded), counts, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
        means = states.sum(1) / counts[:, None]  # states behind a text's end are zero
        _loss(means).backward()
        optimizer.step()

    return step
