"""Checkpoints of a training run on pair stores: written whole, checked before anything of them is loaded."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformerTrainer
from torch import nn
from transformers import TrainerState

from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.learning.models import averaging, pipeline_files
from st_paragram.learning.models.directory import load
from st_paragram.learning.training import checkpoint_state, checkpoints
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.processes import is_main_process
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam


class ResumableTrainer(SentenceTransformerTrainer):
    """sentence-transformers' trainer with checkpoints that can be trusted.

    A checkpoint is a model directory with what else it takes to resume: the optimizer, the random generators, and the
    parameters of the losses. Its list of files with their SHA-256 is written last, and only then older checkpoints go.
    A run is resumed from a whole checkpoint of the same stores, or refused in one line; nothing is unpickled but
    tensors and plain values.

    Attributes:
        stores: the pairs that are trained on, by name.
    """

    args: StoreTrainingArguments
    stores: Mapping[str, PairStore]

    @abstractmethod
    def losses(self) -> dict[str, nn.Module]:
        """The losses by the names of their stores."""

    @abstractmethod
    def up_to_date(self) -> AbstractContextManager[None]:
        """Within the block the weights are as dense Adam would have left them."""

    @property
    @abstractmethod
    def batches_per_epoch(self) -> int:
        """Mini-batches of an epoch."""

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Train as sentence-transformers' trainer does.

        Args:
            resume_from_checkpoint: a checkpoint; True for the newest whole one of the run.
            args: further arguments of sentence-transformers' trainer.
            kwargs: the same.

        Raises:
            SettingsError: there is no such checkpoint, or it is damaged, or of other data or settings.
            StoreError: a store does not hold what was written into it.
        """
        for store in self.stores.values():
            store.check()
        return super().train(self._checkpoint(resume_from_checkpoint), *args, **kwargs)

    def _checkpoint(self, wanted: str | bool | None) -> str | None:
        """The checkpoint to resume from, looked at, if one is wanted; errors as in `train`."""
        if wanted is None or wanted is False:
            return None
        folder = Path(str(self.args.output_dir))
        checkpoint, written = checkpoints.newest_whole(folder) if wanted is True else checkpoints.whole(Path(wanted))
        if written.stores != checkpoints.contents_of(self.stores):
            names = ", ".join(str(store.path) for store in self.stores.values())
            raise SettingsError(f"{checkpoint}: of a run on other data than {names}; resume with the same data")
        with checkpoints.reading(checkpoint):
            done, steps = (
                TrainerState.load_from_json(str(checkpoint / checkpoints.TRAINER_STATE)).global_step,
                self._steps(),
            )
            if done > steps:
                seen = f"{checkpoint}: a checkpoint after {done:,} steps, where the run has {steps:,}"
                raise SettingsError(f"{seen}; resume with the same data and settings")
        return str(checkpoint)

    def _steps(self) -> int:
        """Steps of the whole run."""
        return (
            self.args.max_steps
            if self.args.max_steps > 0
            else math.ceil(self.args.num_train_epochs * self.batches_per_epoch)
        )

    # Writing.

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:  # noqa: ANN401
        if not is_main_process():
            self.store_flos()  # which all processes do together; besides, they know no more than the first one
            return
        checkpoint = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
        (checkpoint / checkpoints.FILE_LIST).unlink(missing_ok=True)  # of one that was passed over
        limit, self.args.save_total_limit = self.args.save_total_limit, None
        try:
            super()._save_checkpoint(model, trial)
        finally:
            self.args.save_total_limit = limit
        if not self.args.save_only_model:
            checkpoints.seal(checkpoint, checkpoints.contents_of(self.stores))
        checkpoints.forget_old(checkpoint, limit, self.state.best_model_checkpoint)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:  # noqa: ANN401
        folder = Path(output_dir or str(self.args.output_dir))
        with self.up_to_date():
            averages = averaging.averaging_embedding(self.model) is not None
            (averaging if averages else pipeline_files).write(self.model, folder)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        self.save_state(Path(output_dir))

    def _save_rng_state(self, output_dir: str) -> None:
        checkpoint_state.save_generators(Path(output_dir) / checkpoints.RANDOM_STATE)

    def save_state(self, folder: Path) -> None:
        """Write to a checkpoint what the trainer must know besides model and optimizer: the losses' own parameters."""
        checkpoint_state.save_losses(self.losses(), self.model, folder)

    # Reading.

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        folder = Path(resume_from_checkpoint)
        with checkpoints.reading(folder):
            self.model.load_state_dict(load(folder, "cpu").state_dict())
            self.load_state(folder)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        optimizer = self.plain_optimizer()
        with checkpoints.reading(checkpoint):
            options = checkpoint_state.options_of(optimizer)
            try:
                super()._load_optimizer_and_scheduler(checkpoint)
                checkpoint_state.check_optimizer(optimizer, options)
            except Exception:
                optimizer.state.clear()  # or rows would catch up with what was refused
                raise

    def _load_scaler(self, checkpoint: str | None) -> None:
        with checkpoints.reading(str(checkpoint)):
            super()._load_scaler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            with checkpoints.reading(checkpoint):
                checkpoint_state.load_generators(Path(checkpoint, checkpoints.RANDOM_STATE))

    def _load_best_model(self) -> None:
        if (optimizer := self.row_lazy_adam()) is not None:
            optimizer.catch_up_all()  # or the last step's sleepers would move the best rows later
        folder = Path(str(self.state.best_model_checkpoint))
        self.model.load_state_dict(load(folder, "cpu").state_dict())
        checkpoint_state.load_losses(self.losses(), self.model, folder)

    def load_state(self, folder: Path) -> None:
        """Read back what `save_state` wrote.

        Raises:
            SettingsError: the checkpoint is of other losses.
        """
        checkpoint_state.load_losses(self.losses(), self.model, folder)

    # The optimizer.

    def plain_optimizer(self) -> torch.optim.Optimizer:
        """The optimizer itself; accelerate wraps it."""
        return cast("torch.optim.Optimizer", getattr(self.optimizer, "optimizer", self.optimizer))

    def row_lazy_adam(self) -> RowLazyAdam | None:
        """The optimizer, if it is this one."""
        optimizer = self.plain_optimizer()
        return optimizer if isinstance(optimizer, RowLazyAdam) else None
