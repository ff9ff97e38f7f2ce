"""Training of a dual encoder on several tasks and languages (ACL 2020)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.families.muse.dual_encoder_ranking import sharing
from st_paragram.families.muse.dual_encoder_tasks import DualEncoderTasks, TaskBatch
from st_paragram.families.muse.mined_negatives import MinedNegatives, PoolTexts
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.task_data import TaskRows
from st_paragram.families.muse.task_sampler import Rows, TaskSampler
from st_paragram.learning.losses.hardest_negatives import Precision
from st_paragram.learning.training.arguments import MixedPrecisionArguments
from st_paragram.learning.training.batch_order import seed_of
from st_paragram.learning.training.collective import gather_rows, sum_gradients, sum_over_processes
from st_paragram.learning.training.mega_batch.schedule import text_labels
from st_paragram.learning.training.store_trainer import StoreTrainer

_DEFAULTS = DualEncoderSettings()
_MINED_BATCHES = 2  # pairs that are embedded at a time while negatives are sought, in batches


@dataclass
class DualEncoderTrainingArguments(MixedPrecisionArguments):
    """Arguments of `StoreTrainer` for dual encoders, whose run is one epoch of as many steps as are asked for.

    Args:
        mined_negatives: besides the other pairs of its batch, a text is contrasted with its hardest negative among all
            batches that were drawn together.
        mining_precision: what similarities are computed in while these are sought, as of `MegaBatchTrainingArguments`.
    """

    num_train_epochs: float = 1.0
    learning_rate: float = _DEFAULTS.learning_rate
    lr_scheduler_type: str = _DEFAULTS.schedule
    mined_negatives: bool = _DEFAULTS.negatives == "mined"
    mining_precision: str = "auto"


class DualEncoderTrainer(StoreTrainer):
    """Train on batches of one task and language each, as a sampler draws them.

    Every process of several encodes its share of a batch; vectors are gathered, so that all pairs of the batch are each
    other's negatives wherever they are, and gradients are summed: they are those of one process. Dropout follows from
    the seed, the step and the process, so that a run resumes to the bit.

    With mined negatives, each batch of pairs comes with the hardest negatives of its texts among all batches that
    were drawn with it, found with the parameters as they are when the first of these batches is due. A checkpoint
    carries what was mined.
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
        self._mined: MinedNegatives | None = None
        super().__init__(model, args, _stores(rows), loss, **kwargs)

    @property
    def batches_per_epoch(self) -> int:
        """Steps of the run, which is one epoch: tasks and languages are drawn, and none has an end."""
        return self._run_steps

    def train(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Train as `StoreTrainer` does."""
        precision = Precision(self.args.mining_precision)
        self._mined = MinedNegatives(self._pool_texts, precision) if self.args.mined_negatives else None
        return super().train(*args, **kwargs)

    def make_step(self, model: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, int]:  # noqa: ANN401
        """Make the forward and backward pass of a batch; gradients are those of all processes."""
        started = time.perf_counter()
        pool, place = self._sampler.pool_at(self.state.global_step)
        of, rows = self._rows[pool.source], pool.batches[place]
        seconds = firsts = rows[:0]
        if self._mined is not None and of.task != "nli":
            seconds, firsts = self._mined.of(pool, place)
            firsts = firsts if of.task == "translation" else firsts[:0]  # nobody looks for the question of an answer
            self._add("mined", (len(seconds) + len(firsts)) / self.args.world_size)
        torch.manual_seed(seed_of(self.args.seed, self.state.global_step, self.args.process_index))
        self.loss.train()
        loss = self._backward_labels(of, rows) if of.task == "nli" else self._backward_pairs(of, rows, firsts, seconds)
        sum_gradients(each for each in self.loss.parameters() if each.grad is not None)  # the others rest
        for name, value in ((f"loss_{of.task}", loss), (f"steps_{of.task}", 1.0)):
            self._add(name, value)
        self._add("pairs", len(rows) / self.args.world_size)
        self._add("seconds", time.perf_counter() - started)
        return loss, len(rows)

    def _backward_labels(self, of: TaskRows, rows: Rows) -> Tensor:
        """The passes of this process's share of a batch of inference; gives the loss of all of it."""
        share, weight = self._share(rows)
        first, second, labels = self._sides(of, share, share)
        assert labels is not None
        loss, right = self.loss.inference(first, second, labels)
        (loss := weight * loss / len(rows)).backward()
        sum_over_processes(loss := loss.detach().clone())
        sum_over_processes(right := weight * right / len(rows))
        self._add("right", right)
        return loss

    def _backward_pairs(self, of: TaskRows, rows: Rows, firsts: Rows, seconds: Rows) -> Tensor:
        """The passes of this process's share of a batch of pairs; gives the loss of all of it.

        Args:
            of: what the rows are of.
            rows: of the pairs.
            firsts: rows whose first texts are further negatives, where first texts are looked for.
            seconds: rows whose second texts are.
        """
        both = [np.concatenate([rows, more]) for more in (firsts, seconds)]
        first, second = self._whole_sides(of, *both)
        in_first, in_second = (sharing(*self._labels(of, each), len(rows)) for each in both)
        loss = self.loss.ranking(of.task, first, second, in_second, in_first)
        loss.backward()
        return loss.detach()

    def _whole_sides(self, of: TaskRows, firsts: Rows, seconds: Rows) -> tuple[Tensor, Tensor]:
        """Vectors of the first texts of rows and of the second texts of others, whichever process makes them."""
        shares, weights = zip(*map(self._share, (firsts, seconds)), strict=True)
        sides = self._sides(of, *shares)[:2]
        process, processes = self.args.process_index, self.args.world_size
        if processes == 1:
            return sides
        first, second = (
            gather_rows(side, weight > 0, process, processes, len(rows))
            for side, weight, rows in zip(sides, weights, (firsts, seconds), strict=True)
        )
        return first, second

    def _share(self, rows: Rows) -> tuple[Rows, float]:
        """This process's rows, and 1; or, where there are fewer rows than processes, one that counts for nothing."""
        share = rows[self.args.process_index :: self.args.world_size]
        return (share, 1.0) if len(share) else (rows[:1], 0.0)

    def _sides(self, of: TaskRows, firsts: Rows, seconds: Rows) -> tuple[Tensor, Tensor, Tensor | None]:
        """Vectors of first and of second texts, as their task compares them, and the labels of inference."""
        batch = task_batch(of, firsts, seconds, self.args.device)
        with torch.autocast(self.args.device.type, torch.bfloat16, enabled=self.args.in_bfloat16):
            return *self.loss.sides(batch), batch.labels

    def _labels(self, of: TaskRows, rows: Rows) -> tuple[Tensor, Tensor]:
        """Numbers of the texts of both sides, int64 (n,) each, equal where texts are."""
        first, second = (torch.from_numpy(text_labels(*of.take(side, rows))).to(self.args.device) for side in SIDES)
        return first, second

    @torch.no_grad()
    def _pool_texts(self, source: int, rows: Rows) -> PoolTexts:
        """The texts of a pool as the model sees them now, without dropout; all processes make their share."""
        of, size = self._rows[source], _MINED_BATCHES * self._sampler.batch_size
        self.loss.eval()
        order = np.argsort(sum(np.diff(of.take(side, rows)[1]) for side in SIDES), kind="stable")
        parts = [self._whole_sides(of, *[rows[order[i : i + size]]] * 2) for i in range(0, len(order), size)]
        back = torch.from_numpy(np.argsort(order)).to(self.args.device)
        first, second = (torch.cat(side)[back].float() for side in zip(*parts, strict=True))
        return PoolTexts((first, second), self._labels(of, rows))

    def save_state(self, folder: Path) -> None:
        """Write what was mined to a checkpoint, too."""
        super().save_state(folder)
        if self._mined is not None:
            self._mined.save(folder)

    def load_state(self, folder: Path) -> None:
        """Read back what `save_state` wrote."""
        super().load_state(folder)
        if self._mined is not None:
            self._mined.load(folder, [len(each) for each in self._rows])

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
            if "mined" in sums:
                logs["mined_per_pair"] = sums["mined"] / max(sums["pairs"], 1e-9)
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


def task_batch(of: TaskRows, firsts: Rows, seconds: Rows, device: torch.device) -> TaskBatch:
    """The first texts of rows of a task, int64 (n,), and the second texts of rows, as its loss takes them.

    Args:
        of: the task's rows.
        firsts: rows, int64 (n,).
        seconds: rows, int64 (m,); for inference the same ones.
        device: of labels.
    """
    first, second = of.take("a", firsts), of.take("b", seconds)
    if of.task == "nli":
        labels = np.asarray(of.store.labels(of.of_store(firsts)), np.int64)
        return TaskBatch(of.task, first, second, labels=torch.from_numpy(labels).to(device))
    if of.contexts is None:
        return TaskBatch(of.task, first, second)
    contexts = of.take("context", seconds)
    without = text_labels(*contexts) == text_labels(*second)  # as stores of tasks write it
    return TaskBatch(of.task, first, second, contexts, torch.from_numpy(without).to(device))
