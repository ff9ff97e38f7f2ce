"""Mega-batch training: mining, and the step on what was mined."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.core.native import kernels
from st_paragram.core.pair_store import PairStore
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError, StoreError
from st_paragram.learning.losses.hardest_negatives import Precision, hardest_negatives
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.losses.taught import TaughtLoss
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.training.mega_batch.arguments import MegaBatchTrainingArguments
from st_paragram.learning.training.mega_batch.compiled_step import CompiledStep
from st_paragram.learning.training.mega_batch.lesson import Lesson
from st_paragram.learning.training.mega_batch.mega_batch import (
    COLUMNS,
    MegaBatchTexts,
    MinedMegaBatch,
    random_negatives,
)
from st_paragram.learning.training.mega_batch.schedule import MegaBatch, mega_batches
from st_paragram.learning.training.mega_batch.teacher import TeacherVectors
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam
from st_paragram.learning.training.store_trainer import ONLY_STORE, StoreTrainer

logger = logging.getLogger(__name__)

_MINING_BATCH = 8192  # sentences whose means torch takes at a time


class MegaBatchTrainer(StoreTrainer):
    """Train on a pair store: mine a mega-batch's negatives with frozen parameters, then make its optimizer steps.

    Source: EMNLP 2022, sections 2 and 3. The mini-batches, the mega-batches and the permutation of an epoch depend on
    the settings and the seed alone. Mining happens in the first step of a mega-batch, so it sees the parameters as the
    last step left them. A checkpoint at any step carries the mined rows and resumes to the bit.

    On a CPU the whole step is one compiled call where that can be (see `CompiledStep`); the log says which it is.

    Example:
        >>> import st_paragram
        >>> from st_paragram import MegaBatchTrainer, MegaBatchTrainingArguments, PairStore, SentencePieceEmbedding
        >>> store = PairStore("data/en-es.h5")
        >>> model = st_paragram.pipeline(SentencePieceEmbedding(store.tokenizer(), 32), device="cpu")
        >>> arguments = MegaBatchTrainingArguments("checkpoints", num_train_epochs=1, use_cpu=True, disable_tqdm=True)
        >>> result = MegaBatchTrainer(model, arguments, store).train()
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
        """Set up a training run.

        Args:
            model: any pipeline that a model directory can hold.
            args: arguments of the run.
            train_dataset: the pairs; the ids of both sides are rows of one table.
            loss: takes four columns (s, t, negative of s, negative of t); `MarginHardNegativeLoss` by default.
            kwargs: further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and `callbacks`.

        Raises:
            SettingsError: a model that starts with `TokenEmbedding` on another tokenizer than the store's.
            StoreError: fewer than two pairs, or a tokenizer for each side; or vectors of a teacher that are not of the
                store.
            ModelDirectoryError: a model that no model directory can hold.
        """
        if len(train_dataset) < 2:
            raise StoreError(f"{train_dataset.path}: {len(train_dataset)} pair; a negative needs at least two pairs")
        first, second = train_dataset.tokenizers
        if not first.shares_rows(second):
            raise StoreError(
                f"{train_dataset.path}: the sides have separate tokenizers and rows; mega-batches need ids "
                "of one table, so prepare the pairs again"
            )
        self.store = train_dataset
        self._teacher = TeacherVectors(args.teacher, train_dataset) if args.teacher else None
        self._lesson: Lesson | None = None
        self._schedule: Iterator[MegaBatch] | None = None
        self._current: MinedMegaBatch | None = None
        self._compiled: CompiledStep | None = None
        self._reader = ThreadPoolExecutor(1, "next mega-batch")
        self._read_ahead: Future[MegaBatchTexts] | None = None
        super().__init__(model, args, train_dataset, self._weighted(model, args, loss), **kwargs)
        self.precision = Precision(args.mining_precision).on(args.device)

    def _weighted(
        self, model: SentenceTransformer, args: MegaBatchTrainingArguments, loss: nn.Module | None
    ) -> nn.Module:
        """The loss, weighed and with a teacher where there is one."""
        margin_loss = loss or MarginHardNegativeLoss(model)
        if self._teacher is None and args.margin_weight == 1:
            return margin_loss
        if type(margin_loss) is not MarginHardNegativeLoss:
            seen = f"the loss is {type(margin_loss).__name__}, and a teacher or a margin_weight is given"
            raise SettingsError(f"{seen}; they go with MarginHardNegativeLoss alone")
        if self._teacher is not None:
            dim, teacher = model.get_embedding_dimension(), self._teacher
            assert dim is not None  # a pipeline that `MarginHardNegativeLoss` takes has a dimension
            self._lesson = Lesson(
                args.teacher_weight, dim, teacher.dim, args.seed, model.device, teacher.digest, args.teacher_every
            )
            logger.info(
                f"teacher: {teacher.name}, {counted(teacher.dim, 'component')}; weight: {args.teacher_weight:g}"
            )
        return TaughtLoss(margin_loss, args.margin_weight, self._lesson)

    def train(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Train as `StoreTrainer` does.

        Raises:
            KeyboardInterrupt: on Ctrl-C, after a checkpoint was written.
        """
        self._schedule = self._current = self._compiled = None
        try:
            return super().train(*args, **kwargs)
        finally:
            self._read_ahead = None

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Make the optimizer, and the compiled step on its state where that can be."""
        optimizer = super().create_optimizer(model)
        if isinstance(optimizer, RowLazyAdam):
            self._compiled = self._compiled_step(optimizer)
        return optimizer

    def _compiled_step(self, optimizer: RowLazyAdam) -> CompiledStep | None:
        margin_loss = self.loss.margin_loss if isinstance(self.loss, TaughtLoss) else self.loss
        obstacle = CompiledStep.obstacle(self.model, margin_loss, self.args.max_grad_norm)
        if not self.args.compiled_step:
            obstacle = "compiled_step is False"
        how = f"torch ({obstacle})" if obstacle else f"compiled ({kernels().instructions()})"
        threads = torch.get_num_threads()
        logger.info(
            f"step: {how}; mining: {self.precision.value}; device: {self.args.device}, {counted(threads, 'thread')}"
        )
        if obstacle:
            return None
        assert isinstance(margin_loss, MarginHardNegativeLoss)
        assert self.embedding is not None
        table, dropout = self.embedding.embedding.weight, self.embedding.dropout
        taught = self.args.margin_weight, self._lesson
        return CompiledStep(optimizer, table, margin_loss.margin, dropout, self.args.seed, *taught)

    def make_step(self, model: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, int]:  # noqa: ANN401
        """Mine if the step opens a mega-batch, then make the step on its pairs and negatives.

        The compiled step includes the optimizer's, which then finds no gradient and does nothing.
        """
        step, size = self.state.global_step, self.args.train_batch_size
        current = self._mined(self._mega_batch_of(step))
        start = (step % self.batches_per_epoch - current.texts.mega.start) * size
        columns = current.columns[:, start : start + size]
        if self._compiled is not None:
            return torch.tensor(self._compiled.train(current.texts, columns)), columns.shape[1]
        features = {
            name: self._features(current.texts, sentences) for name, sentences in zip(COLUMNS, columns, strict=True)
        }
        return self._torch_step(model, features, current, columns, *args, **kwargs), columns.shape[1]

    def _torch_step(
        self,
        model: nn.Module,
        features: dict[str, dict[str, Tensor]],
        current: MinedMegaBatch,
        columns: np.ndarray[Any, Any],
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> Tensor:
        """Make the forward and backward pass, with what the teacher says of the batch."""
        lesson, targets = self._lesson, current.texts.targets
        if lesson is None or targets is None:
            return self.loss_step(model, features, ONLY_STORE, None, *args, **kwargs)
        of_batch = targets[columns[:2, :: lesson.every].ravel()]
        loss = self.loss_step(model, features, ONLY_STORE, of_batch, *args, **kwargs)
        lesson.step()
        return loss

    def _features(self, texts: MegaBatchTexts, sentences: np.ndarray[Any, Any]) -> dict[str, Tensor]:
        return self.features(ONLY_STORE, "a", *texts.take(sentences))

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
        args = self.args
        return self._with_targets(
            MegaBatchTexts.read(self.store, mega, args.train_batch_size, args.seed, args.scramble)
        )

    def _with_targets(self, texts: MegaBatchTexts) -> MegaBatchTexts:
        """The texts with the teacher's vectors, if there is a teacher."""
        if self._teacher is None or texts.rows is None:
            return texts
        return replace(texts, targets=self._teacher.take(texts.rows))

    @torch.no_grad()
    def _mine(self, texts: MegaBatchTexts) -> MinedMegaBatch:
        """Choose the negatives of a mega-batch with the present parameters, dropout off."""
        if not self.args.margin_weight:  # none are needed: partners substitute, whose rows are available
            partners = np.arange(texts.pairs)
            return MinedMegaBatch.mined(texts, partners, partners, both_sides=False)
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
        # Other models than averages pad texts: those of like length together, as many as the step has at once.
        averaging = averaging_embedding(self.model) is not None
        size = _MINING_BATCH if averaging else len(COLUMNS) * self.args.train_batch_size
        order = np.argsort(np.diff(texts.offsets), kind="stable")
        parts = []
        for start in range(0, len(order), size):
            features = self._prepare_inputs(self._features(texts, order[start : start + size]))
            parts.append(self.model(features)["sentence_embedding"])
        self.model.train()
        return torch.cat(parts)[torch.from_numpy(np.argsort(order)).to(parts[0].device)]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log M with the loss."""
        if "loss" in logs and self._current is not None:
            logs["megabatch_size"] = self._current.texts.mega.size
        if "loss" in logs and self._lesson is not None:
            logs["teacher"] = self._lesson.mean_distance()
        super().log(logs, start_time)

    def save_state(self, folder: Path) -> None:
        """Write the mined rows of the present mega-batch to a checkpoint, too."""
        super().save_state(folder)
        if self._current is not None:
            self._current.save(folder)
        if self._lesson is not None:
            self._lesson.save(folder)

    def load_state(self, folder: Path) -> None:
        """Read back what `save_state` wrote."""
        super().load_state(folder)
        args = self.args
        current = MinedMegaBatch.load(folder, self.store, args.train_batch_size, args.seed, args.scramble)
        self._current = replace(current, texts=self._with_targets(current.texts))
        if self._lesson is not None:
            self._lesson.load(folder)
