"""Mega-batch training inside sentence-transformers' trainer."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset
from transformers import PrinterCallback, ProgressCallback

from st_paragram.data.pair_store import PairStore
from st_paragram.errors import SettingsError, StoreError
from st_paragram.losses.hardest_negatives import Precision, hardest_negatives
from st_paragram.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.models import directory as model_directory
from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.native import huge_pages, kernels
from st_paragram.training.callbacks import InterruptCallback, RateCallback
from st_paragram.training.mega_batch.arguments import MegaBatchTrainingArguments
from st_paragram.training.mega_batch.compiled_step import CompiledStep
from st_paragram.training.mega_batch.mega_batch import COLUMNS, MegaBatchTexts, MinedMegaBatch
from st_paragram.training.mega_batch.random_negatives import random_negatives
from st_paragram.training.mega_batch.schedule import MegaBatch, mega_batches
from st_paragram.training.row_lazy_adam import RowLazyAdam, rows_and_values

logger = logging.getLogger(__name__)

_MINING_BATCH = 8192  # sentences embedded at a time where torch embeds them


class _Steps(IterableDataset):  # type: ignore[type-arg]
    """As many empty batches as an epoch has mini-batches: what a step trains on follows from its number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({} for _ in range(self.count))


class MegaBatchTrainer(SentenceTransformerTrainer):
    """Train on a pair store: mine a mega-batch's negatives with frozen parameters, then make its optimiser steps.

    Source: EMNLP 2022, sections 2 and 3. The mini-batches, the mega-batches and the permutation of an epoch depend on
    the settings and the seed alone. Mining happens in the first `training_step` of a mega-batch, so it sees the
    parameters as the last step left them. A checkpoint at any step carries the mined rows and resumes to the bit.

    On a CPU the whole step is one compiled call where that can be (see `CompiledStep`); the log says which it is.
    """

    training_args_class = MegaBatchTrainingArguments
    args: MegaBatchTrainingArguments
    loss: nn.Module  # type: ignore[assignment]

    def __init__(
        self,
        model: SentenceTransformer,
        args: MegaBatchTrainingArguments,
        train_dataset: PairStore,
        loss: nn.Module | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Set up a training.

        Args:
            model: a pipeline that starts with `SentencePieceEmbedding`, with the store's vocabulary.
            args: settings.
            train_dataset: the pairs.
            loss: takes four columns (s, t, negative of s, negative of t); `MarginHardNegativeLoss` by default.
            kwargs: further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and `callbacks`.

        Raises:
            SettingsError: a model that cannot be trained on the store's ids.
            StoreError: fewer than two pairs.
        """
        if len(train_dataset) < 2:
            raise StoreError(f"{train_dataset.path}: {len(train_dataset)} pair; a negative needs at least two pairs")
        self.embedding = _embedding_of(model, train_dataset)
        model_directory.check_savable(model)
        self.embedding.sparse_gradient = args.row_lazy_adam
        self.store = train_dataset
        self._schedule: Iterator[MegaBatch] | None = None
        self._current: MinedMegaBatch | None = None
        self._compiled: CompiledStep | None = None
        self._reader = ThreadPoolExecutor(1, "next mega-batch")
        self._read_ahead: Future[MegaBatchTexts] | None = None
        super().__init__(model=model, args=args, loss=loss or MarginHardNegativeLoss(model), **kwargs)
        self.remove_callback(ProgressCallback)
        self.remove_callback(PrinterCallback)
        self._rate, self._interrupt = RateCallback(self), InterruptCallback()
        self.add_callback(self._rate)
        self.add_callback(self._interrupt)

        self.precision = Precision(args.mining_precision).on(args.device)
        table = self.embedding.embedding.weight
        if table.device.type == "cpu":
            table.data = huge_pages.copy_of(table.data)

    @property
    def step_seconds(self) -> float:
        """Time of the last training's steps; evaluation and checkpoints left out."""
        return self._rate.seconds

    @property
    def pairs_trained(self) -> int:
        """Pairs of those steps."""
        return self._rate.pairs

    @property
    def own_seconds(self) -> float:
        """The part of `step_seconds` that went into reading, mining and the steps themselves, not into the shell."""
        return self._rate.own_seconds

    def train(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Train as sentence-transformers' trainer does.

        Raises:
            KeyboardInterrupt: on Ctrl-C, after a checkpoint was written.
        """
        self._schedule = self._current = self._compiled = None
        try:
            output = super().train(*args, **kwargs)
        finally:
            self._interrupt.release()
            self._rate.close()
            self._read_ahead = None
            self.embedding.before_lookup = None
            if (optimizer := self._row_lazy_adam()) is not None:
                optimizer.catch_up_all()
        if self._interrupt.interrupted:
            raise KeyboardInterrupt
        return output

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Evaluate the weights as dense Adam would have left them; training goes on as if nobody had looked."""
        with self._up_to_date():
            return super().evaluate(*args, **kwargs)

    @contextmanager
    def _up_to_date(self) -> Iterator[None]:
        optimizer, hook = self._row_lazy_adam(), self.embedding.before_lookup
        self.embedding.before_lookup = None
        try:
            with optimizer.caught_up() if optimizer else nullcontext():
                yield
        finally:
            self.embedding.before_lookup = hook

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Make `RowLazyAdam` on the embedding table, or the optimiser that `args.optim` names."""
        if not self.args.row_lazy_adam:
            return super().create_optimizer(model) if model is not None else super().create_optimizer()
        others = [name for name, p in self.loss.named_parameters() if p is not self.embedding.embedding.weight]
        if others:
            raise SettingsError(
                f"RowLazyAdam trains the embedding table alone, not {others[0]}; set row_lazy_adam=False"
            )
        args = self.args
        optimizer = RowLazyAdam(
            [cast("nn.Parameter", self.embedding.embedding.weight)],
            args.learning_rate,
            (args.adam_beta1, args.adam_beta2),
            args.adam_epsilon,
        )
        optimizer.watch(self.embedding)
        # accelerate wraps what is not marked so, and its wrapper takes longer than many a step: it looks for a package
        # on the disk and inspects a signature, each time. There is nothing to scale or to share out here.
        optimizer._is_accelerate_prepared = True  # type: ignore[attr-defined]
        optimizer.step_was_skipped = False  # type: ignore[attr-defined]
        self.optimizer = optimizer
        self._compiled = self._compiled_step(optimizer)
        return optimizer

    def _compiled_step(self, optimizer: RowLazyAdam) -> CompiledStep | None:
        obstacle = CompiledStep.obstacle(self.model, self.loss, self.args.max_grad_norm)
        if not self.args.compiled_step:
            obstacle = "compiled_step is False"
        how = f"torch ({obstacle})" if obstacle else f"compiled ({kernels().instructions()})"
        threads = torch.get_num_threads()
        logger.info(f"step: {how}; mining: {self.precision.value}; device: {self.args.device}, {threads} threads")
        if obstacle:
            return None
        assert isinstance(self.loss, MarginHardNegativeLoss)
        table, dropout = self.embedding.embedding.weight, self.embedding.dropout
        return CompiledStep(optimizer, table, self.loss.margin, dropout, self.args.seed)

    @property
    def batches_per_epoch(self) -> int:
        """Mini-batches of an epoch, the remainder batch included."""
        return -(-len(self.store) // self.args.train_batch_size)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Empty batches; not prepared by accelerate, which has nothing to move or to share out here."""
        return DataLoader(_Steps(self.batches_per_epoch), batch_size=None, num_workers=0)

    def num_examples(self, dataloader: DataLoader[Any]) -> int:
        """Number of pairs."""
        return len(self.store)

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """Mine if the step opens a mega-batch, then make the step on its pairs and negatives.

        The compiled step includes the optimiser's, which then finds no gradient and does nothing.
        """
        started = time.perf_counter()
        current = self._mined(self._mega_batch_of(self.state.global_step))
        start = (
            self.state.global_step % self.batches_per_epoch - current.texts.mega.start
        ) * self.args.train_batch_size
        columns = current.columns[:, start : start + self.args.train_batch_size]
        if self._compiled is not None:
            loss = torch.tensor(self._compiled.train(current.texts, columns))
        else:
            batch = {}
            for name, sentences in zip(COLUMNS, columns, strict=True):
                batch.update({f"{name}_{key}": value for key, value in current.texts.features(sentences).items()})
            loss = super().training_step(model, batch, *args, **kwargs)
        if not torch.isfinite(loss):
            raise SettingsError(f"loss is {loss.item()} at step {self.state.global_step}; lower the learning rate")
        self._rate.own_seconds += time.perf_counter() - started
        return loss

    def _mega_batch_of(self, step: int) -> MegaBatch:
        """The mega-batch of a step; the schedule is followed from the start, so that resuming needs no state."""
        epoch, index = divmod(step, self.batches_per_epoch)
        if self._schedule is None:
            self._schedule = mega_batches(self.batches_per_epoch, self.args.megabatch_size, self.args.anneal_interval)
            self._scheduled, self._following = next(self._schedule), next(self._schedule)
        while (self._scheduled.epoch, self._scheduled.stop) <= (epoch, index):
            self._scheduled, self._following = self._following, next(self._schedule)
        return self._scheduled

    def _mined(self, mega: MegaBatch) -> MinedMegaBatch:
        """The mega-batch with its negatives, mined at its first step; the next one's texts are read meanwhile."""
        if self._current is None or self._current.texts.mega != mega:
            self._current = self._mine(self._texts_of(mega))
            self._read_ahead = self._reader.submit(self._read, self._following)
        return self._current

    def _texts_of(self, mega: MegaBatch) -> MegaBatchTexts:
        ahead, self._read_ahead = self._read_ahead, None
        texts = ahead.result() if ahead is not None else None
        return texts if texts is not None and texts.mega == mega else self._read(mega)

    def _read(self, mega: MegaBatch) -> MegaBatchTexts:
        return MegaBatchTexts.read(self.store, mega, self.args.train_batch_size, self.args.seed)

    @torch.no_grad()
    def _mine(self, texts: MegaBatchTexts) -> MinedMegaBatch:
        """Choose the negatives of a mega-batch with the present parameters, dropout off."""
        if self.args.random_negatives:
            mega = texts.mega
            drawn = random_negatives(texts.pairs, self.args.seed, mega.epoch, mega.start)
            return MinedMegaBatch.mined(texts, *drawn, both_sides=False)
        first, second = self._embed(texts).split(texts.pairs)
        labels = None
        if self.args.mask_duplicates:
            first_labels, second_labels = (torch.from_numpy(labels).to(first.device) for labels in texts.labels())
            labels = (first_labels, second_labels)
        both = self.args.negatives_from_both_sides
        of_s, of_t = hardest_negatives(first, second, labels, both_sides=both, precision=self.precision)
        return MinedMegaBatch.mined(texts, of_s.cpu().numpy(), of_t.cpu().numpy(), both)

    def _embed(self, texts: MegaBatchTexts) -> Tensor:
        """Embeddings of all sentences, float (2n, D)."""
        if self._compiled is not None:
            return self._compiled.embed(texts)
        self.model.eval()
        parts = []
        for start in range(0, 2 * texts.pairs, _MINING_BATCH):
            features = texts.features(slice(start, start + _MINING_BATCH))
            features = {key: value.to(self.args.device) for key, value in features.items()}
            parts.append(self.model(features)["sentence_embedding"])
        self.model.train()
        return torch.cat(parts)

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        """Clip as torch's `clip_grad_norm_`, which refuses sparse gradients."""
        gradient = self.embedding.embedding.weight.grad
        if gradient is None or not gradient.is_sparse:
            return super()._clip_grad_norm(model)
        norm = rows_and_values(gradient)[1].norm()
        gradient._values().mul_((self.args.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:  # noqa: ANN401
        """Only a norm that clipping has computed is logged: another pass over the gradient tells little."""
        return grad_norm

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log M with the loss."""
        if "loss" in logs and self._current is not None:
            logs["megabatch_size"] = self._current.texts.mega.size
        super().log(logs, start_time)

    # Checkpoints: a model directory, the optimiser's state, and the mined rows of the mega-batch under way.

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:  # noqa: ANN401
        folder = Path(output_dir or str(self.args.output_dir))
        with self._up_to_date():
            model_directory.write_files(self.model, folder)
        if self._current is not None:
            self._current.save(folder)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        model_directory.read_weights(Path(resume_from_checkpoint), into=self.embedding)
        batch_size, seed = self.args.train_batch_size, self.args.seed
        self._current = MinedMegaBatch.load(Path(resume_from_checkpoint), self.store, batch_size, seed)

    def _load_best_model(self) -> None:
        if (optimizer := self._row_lazy_adam()) is not None:
            optimizer.catch_up_all()  # or the last step's sleepers would move the best rows later
        model_directory.read_weights(Path(str(self.state.best_model_checkpoint)), into=self.embedding)

    def _row_lazy_adam(self) -> RowLazyAdam | None:
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)  # accelerate wraps it
        return optimizer if isinstance(optimizer, RowLazyAdam) else None


def _embedding_of(model: SentenceTransformer, store: PairStore) -> SentencePieceEmbedding:
    embedding = model[0]
    if not isinstance(embedding, SentencePieceEmbedding):
        raise SettingsError(
            f"the model starts with {type(embedding).__name__}; MegaBatchTrainer needs SentencePieceEmbedding"
        )
    if any(tokenizer.content != embedding.tokenizer.content for tokenizer in store.tokenizers):
        raise SettingsError(f"{store.path}: the model's vocabulary is not the store's; build it with store.tokenizer()")
    return embedding
