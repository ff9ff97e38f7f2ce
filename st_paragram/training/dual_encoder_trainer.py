"""Training of a dual encoder on several tasks and languages (ACL 2020)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from st_paragram.data.pair_store import SIDES, PairStore
from st_paragram.losses.dual_encoder_ranking import sharing
from st_paragram.losses.dual_encoder_tasks import DualEncoderTasks, TaskBatch
from st_paragram.models.dual_encoder import DualEncoder
from st_paragram.training.collective import gather_rows, sum_gradients, sum_over_processes
from st_paragram.training.dual_encoder_arguments import DualEncoderTrainingArguments
from st_paragram.training.mega_batch.schedule import text_labels
from st_paragram.training.seeds import seed_of
from st_paragram.training.store_trainer import StoreTrainer
from st_paragram.training.task_data import TaskRows
from st_paragram.training.task_sampler import TaskSampler


class DualEncoderTrainer(StoreTrainer):
    """Train on batches of one task and language each, as a sampler draws them.

    Every process of several encodes its share of a batch; vectors are gathered, so that all pairs of the batch are each
    other's negatives wherever they are, and gradients are summed: they are those of one process. Dropout follows from
    the seed, the step and the process, so that a run resumes to the bit.
    """

    training_args_class = DualEncoderTrainingArguments
    args: DualEncoderTrainingArguments
    loss: DualEncoderTasks  # type: ignore[assignment]

    def __init__(
        self,
        model: DualEncoder,
        args: DualEncoderTrainingArguments,
        rows: Sequence[TaskRows],
        sampler: TaskSampler,
        steps: int,
        loss: DualEncoderTasks,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Set up a training run.

        Args:
            model: whose pipeline the loss has.
            args: arguments of the run.
            rows: of all tasks.
            sampler: of their sources, in the same order.
            steps: of the run.
            loss: of all tasks.
            kwargs: further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and `callbacks`.

        Raises:
            SettingsError: a store of another vocabulary than the model's.
            ModelDirectoryError: a model that no model directory can hold.
        """
        self._rows, self._sampler, self._run_steps = list(rows), sampler, steps
        self._sums: dict[str, Tensor | float] = {}
        super().__init__(model, args, _stores(rows), loss, **kwargs)

    @property
    def batches_per_epoch(self) -> int:
        """Steps of the run, which is one epoch: tasks and languages are drawn, and none has an end."""
        return self._run_steps

    def make_step(self, model: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, int]:  # noqa: ANN401
        """Make the forward and backward pass of a batch; gradients are those of all processes."""
        started = time.perf_counter()
        source, rows = self._sampler.at(self.state.global_step)
        of = self._rows[source]
        torch.manual_seed(seed_of(self.args.seed, self.state.global_step, self.args.process_index))
        self.loss.train()
        loss = self._backward(of, rows)
        sum_gradients(each for each in self.loss.parameters() if each.grad is not None)  # the others rest
        for name, value in ((f"loss_{of.task}", loss.detach()), (f"steps_{of.task}", 1.0)):
            self._add(name, value)
        self._add("pairs", len(rows) / self.args.world_size)
        self._add("seconds", time.perf_counter() - started)
        return loss.detach(), len(rows)

    def _backward(self, of: TaskRows, rows: NDArray[np.int64]) -> Tensor:
        """The passes of this process's share of a batch; gives the loss of all of it."""
        process, processes = self.args.process_index, self.args.world_size
        share = rows[process::processes]
        if not len(share):  # fewer rows than processes: the share of another stands in, and counts for nothing
            share, weight = rows[:1], 0.0
        else:
            weight = 1.0
        batch = task_batch(of, share, self.args.device)
        with torch.autocast(self.args.device.type, torch.bfloat16, enabled=self.args.in_bfloat16):
            first, second = self.loss.sides(batch)
        if batch.labels is not None:
            loss, right = self.loss.inference(first, second, batch.labels)
            (loss := weight * loss / len(rows)).backward()
            sum_over_processes(loss := loss.detach().clone())
            sum_over_processes(right := weight * right / len(rows))
            self._add("right", right)
            return loss
        if processes > 1:
            first, second = (gather_rows(side, weight > 0, process, processes, len(rows)) for side in (first, second))
        labels = [torch.from_numpy(text_labels(*of.take(side, rows))).to(first.device) for side in SIDES]
        loss = self.loss.ranking(of.task, first, second, sharing(*labels))
        loss.backward()
        return loss

    def _add(self, name: str, value: Tensor | float) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + value

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log each task's mean loss since the last time, and how many labels of inference were found, 0 .. 1."""
        if "loss" in logs and self._sums:
            sums = {name: float(value) for name, value in self._sums.items()}
            self._sums = {}
            tasks = {name.removeprefix("steps_"): count for name, count in sums.items() if name.startswith("steps_")}
            logs |= {task: sums[f"loss_{task}"] / count for task, count in sorted(tasks.items())}
            if "nli" in tasks:
                logs["nli_accuracy"] = sums["right"] / tasks["nli"]
            logs["pairs_per_second"] = sums["pairs"] / max(sums["seconds"], 1e-9)
        super().log(logs, start_time)


def _stores(rows: Sequence[TaskRows]) -> dict[str, PairStore]:
    """All stores by names without dots, each once."""
    named: dict[str, PairStore] = {}
    for each in rows:
        name = "translation" if each.task == "translation" else f"{each.task}-{each.language}"
        named[name] = each.store
        if each.contexts is not None:
            named[f"{name}-contexts"] = each.contexts
    return named


def task_batch(of: TaskRows, rows: NDArray[np.int64], device: torch.device) -> TaskBatch:
    """Rows of a task, int64 (n,), as its loss takes them, labels on a device."""
    first, second = (of.take(side, rows) for side in SIDES)
    if of.task == "nli":
        labels = np.asarray(of.store.labels(of.of_store(rows)), np.int64)
        return TaskBatch(of.task, first, second, labels=torch.from_numpy(labels).to(device))
    if of.contexts is None:
        return TaskBatch(of.task, first, second)
    contexts = of.take("context", rows)
    without = text_labels(*contexts) == text_labels(*second)  # as stores of tasks write it
    return TaskBatch(of.task, first, second, contexts, torch.from_numpy(without).to(device))
