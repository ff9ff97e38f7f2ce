"""Peers that train on the same pairs: ours, and sentence-transformers' own model and losses under its own trainer."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from harness.speed.peers import Channel

from st_paragram.core.pair_store import PairStore

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer


def run(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Train, and stop after each round's steps until the next round is asked for.

    Args:
        peer: "ours", "multiple-negatives" or "megabatch-margin".
        arguments: `store`, `dim`, `batch_size`, `steps` (of a round), `total_steps` (of all rounds), `device`; for ours
            also `megabatch_size`, `mining_precision`; for the others `tokenizer` (a `tokenizer.json`) and
            `pairs` (at most so many are decoded).
        channel: to the benchmark. Work is counted in pairs.
    """
    store = PairStore(arguments["store"])
    with tempfile.TemporaryDirectory() as folder:
        make = _ours if peer == "ours" else _stock
        trainer = make(peer, arguments, store, folder)
        trainer.add_callback(rounds_callback(trainer, arguments["steps"], arguments["batch_size"], channel))
        channel.ready()
        if channel.wait():
            trainer.train()


def run_whole(peer: str, arguments: dict[str, Any], channel: Channel) -> None:
    """Train from the start in each round, as the recipes do, with M growing to its largest.

    Args:
        peer: ignored.
        arguments: `store`, and under `settings` fields of `TrainingSettings`.
        channel: to the benchmark. The time is that of the steps; evaluation and checkpoints, of which a run as short
            as this has far too many, are left out.
    """
    from st_paragram.learning.training.run import TrainingRun, run_training

    store = PairStore(arguments["store"])
    channel.ready()
    while channel.wait():
        with tempfile.TemporaryDirectory() as folder:
            run = TrainingRun(
                store.languages[1], Path(folder) / "model", [str(store.path)], overrides=arguments["settings"]
            )
            record = run_training(run)
        pairs = record.settings["epochs"] * len(store)
        channel.report(pairs / record.pairs_per_second, pairs)


def rounds_callback(trainer: SentenceTransformerTrainer, steps: int, batch_size: int, channel: Channel) -> Any:  # noqa: ANN401
    """A callback that reports every `steps` steps and waits: everything that the loop does in between is counted."""
    from transformers import TrainerCallback

    class Rounds(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:  # noqa: ANN401
            self._restart()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401
            if state.global_step % steps:
                return
            seconds = time.perf_counter() - self.started
            channel.report(seconds, steps * batch_size)
            if channel.wait():
                self._restart()
            else:
                control.should_training_stop = True

        def _restart(self) -> None:
            self.started = time.perf_counter()

    return Rounds()


def _ours(peer: str, arguments: dict[str, Any], store: PairStore, folder: str) -> SentenceTransformerTrainer:
    """MegaBatchTrainer with M from the start at its largest."""
    from st_paragram.families.psp.training import new_model
    from st_paragram.learning.training.mega_batch_trainer import MegaBatchTrainer, MegaBatchTrainingArguments
    from st_paragram.learning.training.settings import TrainingSettings

    settings = TrainingSettings(dim=arguments["dim"], device=arguments["device"])
    model = new_model(store, settings)
    training_arguments = MegaBatchTrainingArguments(
        folder,
        max_steps=arguments["total_steps"],
        per_device_train_batch_size=arguments["batch_size"],
        megabatch_size=arguments["megabatch_size"],
        anneal_interval=0,
        mining_precision=arguments["mining_precision"],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=arguments["device"] == "cpu",
    )
    return MegaBatchTrainer(model, training_arguments, store)


def _stock(peer: str, arguments: dict[str, Any], store: PairStore, folder: str) -> SentenceTransformerTrainer:
    """StaticEmbedding under SentenceTransformerTrainer, on the store's pairs as text."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MegaBatchMarginLoss, MultipleNegativesRankingLoss

    model = _static_embedding(arguments)
    rows = np.arange(min(len(store), arguments["pairs"]))
    data = Dataset.from_dict({"anchor": list(store.texts("a", rows)), "positive": list(store.texts("b", rows))})
    loss = (
        MultipleNegativesRankingLoss(model)
        if peer == "multiple-negatives"
        else MegaBatchMarginLoss(model, use_mini_batched_version=False)
    )
    training_arguments = SentenceTransformerTrainingArguments(
        folder,
        max_steps=arguments["total_steps"],
        per_device_train_batch_size=arguments["batch_size"],
        dataloader_drop_last=True,
        dataloader_pin_memory=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=arguments["device"] == "cpu",
    )
    return SentenceTransformerTrainer(model=model, args=training_arguments, train_dataset=data, loss=loss)


def _static_embedding(arguments: dict[str, Any]) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(arguments["tokenizer"])))
    return SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_dim=arguments["dim"])], device=arguments["device"]
    )
