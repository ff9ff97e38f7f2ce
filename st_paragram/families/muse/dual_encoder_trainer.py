"""Training of dual encoders on several tasks (ACL 2020)."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

import torch
from sentence_transformers.sentence_transformer.evaluation import SequentialEvaluator
from torch import Tensor

from st_paragram.core.formatting import listed
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.families.muse.development import TaskAccuracy, hold_out
from st_paragram.families.muse.losses import DualEncoderTasks
from st_paragram.families.muse.sampler import TaskSampler
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
from st_paragram.families.muse.settings import NO_TASK, DualEncoderSettings, MuseData
from st_paragram.families.muse.task_rows import all_rows
from st_paragram.learning.models.card import AFTER
from st_paragram.learning.training.batch_order import seed_of
from st_paragram.learning.training.trainer import StoreTrainer, StoreTrainingArguments

logger = logging.getLogger(__name__)


class DualEncoderTrainer(StoreTrainer):
    """Train on batches of one task and language each, drawn by a sampler.

    A run is one epoch of the given number of steps. Dropout depends only on the seed and the step,
    so a resumed run gives identical results.
    """

    keeps_history = True
    loss: DualEncoderTasks

    def __init__(
        self,
        model: DualEncoder,
        args: StoreTrainingArguments,
        store: PairStore,
        settings: DualEncoderSettings,
        more: MuseData,
        **kwargs: Any,
    ) -> None:
        """Set up a run on a store of translations and `more` tasks.

        `kwargs` are for `StoreTrainer`.
        """
        parts = all_rows(store, more.tasks, more.languages, settings)
        if not parts:
            raise SettingsError(NO_TASK)
        self.rows, held_out = hold_out(parts, settings.held_out)
        self.sampler = TaskSampler(self.rows, settings)
        self._steps = settings.steps
        self._sums: dict[str, Any] = defaultdict(float)  # since the last line of the log
        self._task_steps: dict[str, int] = defaultdict(int)
        loss = DualEncoderTasks(model, settings)
        self.accuracy = TaskAccuracy(loss, held_out, settings.batch_size)
        super().__init__(model, args, store, loss, **kwargs)
        if self.evaluator is not None and held_out:
            evaluators = [self.evaluator, self.accuracy]
            self.evaluator = SequentialEvaluator(evaluators, lambda scores: scores[0])
        self.task_scores = self.accuracy.scores
        self.task_sizes = {rows.name: len(rows) for rows in self.rows if rows.digest}
        model.trained_on({rows.task for rows in self.rows})
        parameters = sum(parameter.numel() for parameter in loss.parameters())
        logger.info(f"{parameters:,} parameters; shares of the steps:")
        for rows, probability in zip(self.rows, self.sampler.probabilities, strict=True):
            logger.info(f"  {rows.name}: {len(rows):,} pairs, {probability:.1%} of the steps")
        sizes = [f"{len(rows):,} of {rows.name}" for rows in held_out]
        logger.info(f"held-out rows: {listed(sizes) or 'none'}")

    @property
    def batches_per_epoch(self) -> int:
        """Number of steps in the run, since tasks and languages are drawn without end."""
        return self._steps

    @property
    def contents(self) -> list[list[Any]]:
        """Return the digests of the store and the files, and their numbers of rows."""
        files = [[rows.digest, len(rows)] for rows in self.rows if rows.digest]
        return super().contents + files

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train like `StoreTrainer`, and score the held-out rows before and after."""
        self.accuracy.measure("before training")  # a checkpoint is not loaded yet
        output = super().train(*args, **kwargs)
        self.accuracy.measure(AFTER)
        return output

    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Run the forward and backward pass of a batch."""
        source, numbers = self.sampler.at(step)
        batch = self.rows[source].batch(numbers)
        torch.manual_seed(seed_of(self.args.seed, step, 0))
        self.loss.train()
        loss, correct = self.loss(batch, self.args.in_bfloat16)
        loss.backward()
        self._task_steps[batch.task] += 1
        self._sums[batch.task] += loss.detach()
        if correct is not None:
            self._sums["nli_accuracy"] += correct / len(numbers)
        return loss.detach(), len(numbers)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log each task's mean loss since the last line, and the accuracy of inference."""
        if "loss" in logs and self._sums:
            sums = {name: float(value) for name, value in self._sums.items()}
            for task, steps in self._task_steps.items():
                logs[task] = sums[task] / steps
            if "nli_accuracy" in sums:
                logs["nli_accuracy"] = sums["nli_accuracy"] / self._task_steps["nli"]
            self._sums.clear()
            self._task_steps.clear()
        super().log(logs, start_time)
