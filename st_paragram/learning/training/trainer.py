"""Training on a pair store with sentence-transformers' trainer; resumed runs give equal results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, ClassVar, TypeVar
from zipfile import BadZipFile, ZipFile

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers import SentenceTransformerTrainingArguments as TrainingArguments
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, ProgressCallback, TrainerCallback, TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from st_paragram.core.files import naming_full_disk, read_json, write_json
from st_paragram.core.model_directory.record import TaskScore
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError, refused
from st_paragram.learning.models.load_save import check_savable
from st_paragram.learning.training.callbacks import InterruptCallback, RateCallback
from st_paragram.learning.training.checkpoints import (
    COMPLETE,
    check_settings,
    newest_checkpoint,
    remove_old_checkpoints,
)

_WEIGHTS = "weights.safetensors"


@dataclass
class StoreTrainingArguments(TrainingArguments):
    """sentence-transformers' arguments for `StoreTrainer`, with a constant learning rate."""

    in_bfloat16: bool = False  # multiply matrices in bfloat16, if the procedure has any
    lr_scheduler_type: str = "constant"
    weight_decay: float = 0.0
    max_grad_norm: float = 0.0
    optim: str = "adamw_torch_fused"
    save_strategy: str = "epoch"
    save_total_limit: int | None = 1
    logging_steps: float = 200
    logging_nan_inf_filter: bool = False
    dataloader_pin_memory: bool = False
    report_to: str | list[str] | None = field(default="none")

    def __post_init__(self) -> None:
        """Refuse arguments that this trainer does not support."""
        if self.gradient_accumulation_steps != 1:
            raise SettingsError(
                f"gradient_accumulation_steps is {self.gradient_accumulation_steps}, but it is not"
                " supported; set it to 1 and choose per_device_train_batch_size"
            )
        if self.prompts:
            raise SettingsError(
                f"prompts are {self.prompts!r}, but stored texts are used without prompts; set none"
            )
        super().__post_init__()
        devices = max(self.world_size, self.n_gpu)
        if devices > 1:
            raise SettingsError(
                f"{devices} processes or devices, but training uses only one; start without"
                " torchrun, with one visible device (CUDA_VISIBLE_DEVICES=0)"
            )


Arguments = TypeVar("Arguments", bound=StoreTrainingArguments)


def arguments_of(
    kind: type[Arguments],
    settings: Any,
    folder: Path,
    warmup: float,
    evaluate: bool,
    **others: Any,
) -> Arguments:
    """Make a trainer's arguments from the settings of a run, which have fields of the same names.

    `folder` is for checkpoints, `warmup` the number of warm-up steps (below 1: their share of all
    steps), `evaluate` whether the model is evaluated regularly, and `others` override the rest.
    """
    values: dict[str, Any] = {}
    for argument in fields(kind):
        if hasattr(settings, argument.name):
            values[argument.name] = getattr(settings, argument.name)
    values["lr_scheduler_type"] = settings.schedule
    if settings.schedule == "constant" and warmup > 0:
        values["lr_scheduler_type"] = "constant_with_warmup"
    values["warmup_steps"] = warmup
    values["eval_strategy"] = "no"
    if evaluate:
        values["eval_strategy"] = "steps" if settings.evaluate_steps else "epoch"
    values["eval_steps"] = settings.evaluate_steps or None
    has_gpu = torch.cuda.is_available()
    values["use_cpu"] = settings.device == "cpu" or (settings.device == "auto" and not has_gpu)
    arguments = kind(str(folder), **(values | others))

    precision = getattr(settings, "precision", "float32")
    on_gpu = arguments.device.type == "cuda"
    if precision == "bfloat16" and on_gpu and not torch.cuda.is_bf16_supported():
        raise SettingsError(
            "precision is bfloat16, but this GPU does not support it; set it to float32"
        )
    if precision == "auto":
        arguments.in_bfloat16 = on_gpu and torch.cuda.is_bf16_supported()
    else:
        arguments.in_bfloat16 = precision == "bfloat16"
    return arguments


class StoreTrainer(SentenceTransformerTrainer):
    """Train a pipeline on a pair store with a subclass's procedure.

    The data of a step depend only on its number, the store and the seed, so a run can be resumed at
    any step with identical results. A checkpoint holds the weights of model and loss (safetensors),
    and transformers' files for optimizer, schedule and random generators. Training uses one process
    and one device.

    Attributes:
        settings: Settings of the run, if any: a run must be resumed with the same settings.
        task_sizes: Rows of tasks other than translation, by name, for the record.
        task_scores: Accuracy on held-out rows of tasks before and after training, for the record.
    """

    training_args_class = StoreTrainingArguments
    args: StoreTrainingArguments
    loss: nn.Module  # type: ignore[assignment]
    #: Whether the log of a run is stored with the model.
    keeps_history: ClassVar[bool] = False

    def __init__(
        self,
        model: SentenceTransformer,
        args: StoreTrainingArguments,
        store: PairStore,
        loss: nn.Module,
        callbacks: list[TrainerCallback] | None = None,
        **kwargs: Any,
    ) -> None:
        """Set up a run; `kwargs`, such as `evaluator`, are for `SentenceTransformerTrainer`."""
        check_savable(model)
        self.store = store
        self.settings: Mapping[str, Any] = {}
        self.task_sizes: dict[str, int] = {}
        self.task_scores: list[TaskScore] = []
        callbacks = [_CheckpointCallback(self), *(callbacks or [])]
        super().__init__(model=model, args=args, loss=loss, callbacks=callbacks, **kwargs)
        self._model_and_loss = nn.ModuleList([model, loss])
        self.rate: RateCallback = RateCallback()
        self._interrupt = InterruptCallback()
        self.add_callback(self.rate)
        self.add_callback(self._interrupt)
        self.remove_callback(ProgressCallback)
        self.remove_callback(PrinterCallback)

    # Methods that subclasses define.

    @property
    @abstractmethod
    def batches_per_epoch(self) -> int:
        """Return the number of steps in an epoch."""

    @abstractmethod
    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Run forward and backward pass of a step, from 0; return detached loss and pairs."""

    def save_state(self, folder: Path) -> None:
        """Write additional state for resuming to a checkpoint."""

    def load_state(self, folder: Path) -> None:
        """Load what `save_state` wrote."""

    def up_to_date(self) -> AbstractContextManager[Any]:
        """Within the block, the weights are those to evaluate and to save."""
        return nullcontext()

    @property
    def contents(self) -> list[list[Any]]:
        """Return the digest and number of rows of each part of the training data."""
        return [[self.store.digest, len(self.store)]]

    @property
    def trained(self) -> SentenceTransformer:
        """Return the model to save."""
        return self.model

    # Steps.

    def train(
        self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Train like sentence-transformers' trainer.

        After Ctrl-C, a checkpoint is saved, and `KeyboardInterrupt` is raised. A run can be resumed
        from a checkpoint with the same data and settings; True: the newest complete checkpoint.
        """
        if not self.store.is_checked:
            self.store.check()
        self.rate.begin_with()
        folder = Path(str(self.args.output_dir))
        checkpoint = None
        if resume_from_checkpoint is True:
            checkpoint = str(newest_checkpoint(folder))
        elif resume_from_checkpoint:
            checkpoint = str(resume_from_checkpoint)
        if checkpoint:
            self.check_checkpoint(Path(checkpoint))
        # The base class would also remove folders that are not checkpoints of ours.
        self.checkpoint_limit: int | None = self.args.save_total_limit
        self.args.save_total_limit = None
        try:
            with self._interrupt.listening(), naming_full_disk(folder):
                output = super().train(checkpoint, *args, **kwargs)
        finally:
            self.args.save_total_limit = self.checkpoint_limit
            self.rate.bar.close()
        if self._interrupt.interrupted:
            raise KeyboardInterrupt
        return output

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return an empty batch for each step, without accelerate, which has nothing to move."""
        return DataLoader(range(self.batches_per_epoch), collate_fn=lambda _: {})  # type: ignore[arg-type]

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Tensor:
        """Make the current step; raise an error if the loss is not a number."""
        step = self.state.global_step
        loss, pairs = self.make_step(step)
        if not torch.isfinite(loss):
            raise SettingsError(f"loss is {loss.item()} at step {step}; lower the learning rate")
        self.rate.pairs += pairs
        return loss

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        """Clip the gradients of model and loss together."""
        return super()._clip_grad_norm(self._model_and_loss)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        """Return the norm only if clipping has computed it, to save a pass over the gradients."""
        return grad_norm

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the weights of `up_to_date`, without effect on training."""
        with self.up_to_date():
            return super().evaluate(*args, **kwargs)

    # Checkpoints.

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model with its `save_pretrained`, or begin a checkpoint with all weights."""
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        with self.up_to_date():
            if not _internal_call:
                self.model.save_pretrained(str(folder))
                return
            # A run that was resumed at an earlier step replaces its later checkpoints.
            (folder / COMPLETE).unlink(missing_ok=True)
            save_model(self._model_and_loss, str(folder / _WEIGHTS))

    def complete_checkpoint(self) -> None:
        """Add our files to the current step's checkpoint, and remove old checkpoints."""
        folder = Path(str(self.args.output_dir))
        checkpoint = folder / f"checkpoint-{self.state.global_step}"
        self.save_state(checkpoint)
        spent = {
            "wall_seconds": self.rate.wall_seconds,
            "seconds": self.rate.seconds,
            "pairs": self.rate.pairs,
        }
        values = {"contents": self.contents, "settings": dict(self.settings), "spent": spent}
        write_json(checkpoint / COMPLETE, values)
        remove_old_checkpoints(folder, self.checkpoint_limit, self.state.best_model_checkpoint)

    def check_checkpoint(self, checkpoint: Path) -> None:
        """Refuse a damaged checkpoint, or other data or settings; continue to count its time."""
        if not (checkpoint / COMPLETE).is_file():
            raise SettingsError(
                f"{checkpoint}: not a complete checkpoint; resume from another, or train again"
            )
        with _reading(checkpoint):
            # transformers does not check its files
            TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
            for path in checkpoint.glob("*.pt*"):
                with ZipFile(path) as file:
                    if file.testzip():
                        raise ValueError(f"{path.name} is damaged")
            values = read_json(checkpoint / COMPLETE)
            contents = values["contents"]
            self.rate.begin_with(**values["spent"])
        check_settings(checkpoint, self.settings)
        if contents != self.contents:
            raise SettingsError(
                f"{checkpoint}: started with other data than {self.store.path}; resume with the"
                " same"
            )

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: nn.Module | None = None
    ) -> None:
        """Load a checkpoint to resume from, or at the end the best model."""
        with _reading(resume_from_checkpoint):
            load_model(self._model_and_loss, Path(resume_from_checkpoint) / _WEIGHTS)
            self.load_state(Path(resume_from_checkpoint))


class _CheckpointCallback(TrainerCallback):
    """Completes a checkpoint after transformers has written its files."""

    def __init__(self, trainer: StoreTrainer) -> None:
        self.trainer = trainer

    def on_save(self, *_: Any, **__: Any) -> None:
        self.trainer.complete_checkpoint()


def _reading(checkpoint: str | Path) -> AbstractContextManager[None]:
    """Turn errors of reading a checkpoint into one line that names the checkpoint."""
    damaged = (SafetensorError, UnpicklingError, BadZipFile)
    return refused(
        SettingsError, str(checkpoint), "cannot be resumed from", "train again", *damaged
    )
