"""Training on a pair store with sentence-transformers' trainer; resumed runs give identical
results.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, ClassVar, TypeVar
from zipfile import BadZipFile

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers import SentenceTransformerTrainingArguments as TrainingArguments
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, ProgressCallback, TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from st_paragram.core.files import naming_full_disk, read_json, write_json
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import ParagramError, SettingsError, refused
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.learning.models.load_save import check_savable
from st_paragram.learning.training.callbacks import InterruptCallback, RateCallback
from st_paragram.learning.training.checkpoints import (
    COMPLETE,
    newest_checkpoint,
    remove_old_checkpoints,
)

_DEFAULTS = TrainingSettings()
_WEIGHTS = "weights.safetensors"
_MAY_CHANGE = ("device", "evaluate_steps")


@dataclass
class StoreTrainingArguments(TrainingArguments):
    """sentence-transformers' arguments for `StoreTrainer`; defaults as in EMNLP 2022."""

    in_bfloat16: bool = False  # multiply matrices in bfloat16, if the procedure has any
    per_device_train_batch_size: int = _DEFAULTS.batch_size
    num_train_epochs: float = _DEFAULTS.epochs
    learning_rate: float = _DEFAULTS.learning_rate
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
        if (count := self.gradient_accumulation_steps) != 1:
            seen = f"gradient_accumulation_steps is {count}, but it is not supported"
            raise SettingsError(f"{seen}; set it to 1 and choose per_device_train_batch_size")
        if self.prompts:
            raise SettingsError(
                f"prompts are {self.prompts!r}, but stored texts are used without prompts; set none"
            )
        super().__post_init__()
        if (count := max(self.world_size, self.n_gpu)) > 1:
            seen = f"{count} processes or devices, but training uses only one"
            raise SettingsError(
                f"{seen}; start without torchrun, with one visible device (CUDA_VISIBLE_DEVICES=0)"
            )


class StoreTrainer(SentenceTransformerTrainer):
    """Train a pipeline on a pair store with a subclass's procedure: the base class of this
    package's trainers.

    The data of a step depend only on its number, the store and the seed, so a run can be resumed at
    any step with identical results. A checkpoint holds the weights of model and loss (safetensors),
    and transformers' files for optimizer, schedule and random generators. Training uses one process
    and one device.

    Attributes:
        settings: Settings of the run, if any: a run must be resumed with the same settings.
        task_sizes: Rows of tasks other than translation, by name, for the record.
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
        **kwargs: Any,
    ) -> None:
        """Set up a run; `kwargs`, such as `evaluator`, are for `SentenceTransformerTrainer`."""
        check_savable(model)
        self.store = store
        self.settings: Mapping[str, Any] = {}
        self.task_sizes: dict[str, int] = {}
        super().__init__(model=model, args=args, loss=loss, **kwargs)
        self._whole = nn.ModuleList([model, loss])
        self.remove_callback(ProgressCallback)
        self.remove_callback(PrinterCallback)
        self.rate, self._interrupt = RateCallback(), InterruptCallback()
        self.add_callback(self.rate)
        self.add_callback(self._interrupt)

    # Methods that subclasses define.

    @property
    @abstractmethod
    def batches_per_epoch(self) -> int:
        """Return the number of steps in an epoch."""

    @abstractmethod
    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Run the forward and backward pass of a step, counted from 0; return the detached loss and
        number of pairs.
        """

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
        """Train like sentence-transformers' trainer; Ctrl-C raises `KeyboardInterrupt` after a
        checkpoint.

        A run can be resumed from a checkpoint with the same data and settings; True: the newest
        complete checkpoint.
        """
        if not self.store.is_checked:
            self.store.check()
        self.rate.begin_with()
        checkpoint = None
        if resume_from_checkpoint:
            named = None if resume_from_checkpoint is True else Path(resume_from_checkpoint)
            checkpoint = str(self._checked(named or newest_checkpoint(str(self.args.output_dir))))
        try:
            with self._interrupt.listening():
                output = super().train(checkpoint, *args, **kwargs)
        finally:
            self.rate.bar.close()
        if self._interrupt.interrupted:
            raise KeyboardInterrupt
        return output

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return an empty batch for each step of an epoch, without accelerate, which has nothing to
        move here.
        """
        return DataLoader(range(self.batches_per_epoch), collate_fn=lambda _: {})  # type: ignore[arg-type]

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Tensor:
        """Make the current step; raise an error if the loss is not a number."""
        loss, pairs = self.make_step(self.state.global_step)
        if not torch.isfinite(loss):
            raise SettingsError(
                f"loss is {loss.item()} at step {self.state.global_step}; lower the learning rate"
            )
        self.rate.pairs += pairs
        return loss

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        """Clip the gradients of model and loss together."""
        return super()._clip_grad_norm(self._whole)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        """Return the norm for the log only if clipping has computed it, to save a pass over the
        gradients.
        """
        return grad_norm

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the weights of `up_to_date`, without effect on training."""
        with self.up_to_date():
            return super().evaluate(*args, **kwargs)

    # Checkpoints.

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model with its `save_pretrained`; a checkpoint has the weights of model and loss
        in one file.
        """
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        with self.up_to_date():
            if not _internal_call:
                return self.model.save_pretrained(str(folder))
            with refused(
                ParagramError, folder / _WEIGHTS, "not written", "free disk space", SafetensorError
            ):
                save_model(self._whole, str(folder / _WEIGHTS))

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        checkpoint = Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"
        # from a run that was resumed at an earlier step
        (checkpoint / COMPLETE).unlink(missing_ok=True)
        limit, self.args.save_total_limit = self.args.save_total_limit, None
        with naming_full_disk(checkpoint):
            try:
                super()._save_checkpoint(model, trial)
            finally:
                self.args.save_total_limit = limit
            self.save_state(checkpoint)
        spent = {
            "wall_seconds": self.rate.wall_seconds,
            "seconds": self.rate.seconds,
            "pairs": self.rate.pairs,
        }
        write_json(
            checkpoint / COMPLETE,
            {"contents": self.contents, "settings": dict(self.settings), "spent": spent},
        )
        remove_old_checkpoints(checkpoint.parent, limit, self.state.best_model_checkpoint)

    def _checked(self, checkpoint: Path) -> Path:
        """Return a complete checkpoint with the same data and settings, and continue counting its
        time.
        """
        if not (checkpoint / COMPLETE).is_file():
            raise SettingsError(
                f"{checkpoint}: not a complete checkpoint; resume from another, or train again"
            )
        with _reading(checkpoint):
            # transformers does not check it
            TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
            marks = read_json(checkpoint / COMPLETE)
            contents, settings = marks["contents"], marks["settings"]
            self.rate.begin_with(**marks["spent"])
        for name in {**settings, **self.settings}:
            was, now = settings.get(name), self.settings.get(name)
            if name not in _MAY_CHANGE and was != now:
                raise SettingsError(
                    f"{checkpoint}: started with {name} {was}, not {now}; resume with the same"
                )
        if contents != self.contents:
            raise SettingsError(
                f"{checkpoint}: started with other data than {self.store.path}; resume with the"
                " same"
            )
        return checkpoint

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: nn.Module | None = None
    ) -> None:
        with _reading(resume_from_checkpoint):
            load_model(self._whole, Path(resume_from_checkpoint) / _WEIGHTS)
            self.load_state(Path(resume_from_checkpoint))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with _reading(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with _reading(checkpoint):
            super()._load_rng_state(checkpoint)

    def _load_best_model(self) -> None:
        load_model(self._whole, Path(str(self.state.best_model_checkpoint)) / _WEIGHTS)


def _reading(checkpoint: str | Path | None) -> AbstractContextManager[None]:
    """Turn errors of reading a checkpoint into one line that names the checkpoint."""
    damaged = (SafetensorError, UnpicklingError, BadZipFile)
    return refused(
        SettingsError, str(checkpoint), "cannot be resumed from", "train again", *damaged
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
    """Make the arguments of a trainer from the settings of a run: fields with the name of a setting
    get its value.

    `folder` is for checkpoints, `warmup` the number of warm-up steps (below 1: their share of all
    steps), `evaluate` whether the model is evaluated regularly, and `others` override the rest.
    """
    values = {
        each.name: getattr(settings, each.name)
        for each in fields(kind)
        if hasattr(settings, each.name)
    }
    warmed = settings.schedule == "constant" and warmup > 0
    values |= {
        "lr_scheduler_type": "constant_with_warmup" if warmed else settings.schedule,
        "warmup_steps": warmup,
        "eval_strategy": ("steps" if settings.evaluate_steps else "epoch") if evaluate else "no",
        "eval_steps": settings.evaluate_steps or None,
        "use_cpu": (
            settings.device == "cpu"
            or (settings.device == "auto" and not torch.cuda.is_available())
        ),
    }
    made = kind(str(folder), **(values | others))
    precision = getattr(settings, "precision", "float32")
    has_it = made.device.type != "cuda" or torch.cuda.is_bf16_supported()
    if precision == "bfloat16" and not has_it:
        raise SettingsError(
            "precision is bfloat16, but this GPU does not support it; set it to float32"
        )
    made.in_bfloat16 = precision == "bfloat16" or (
        precision == "auto" and made.device.type == "cuda" and has_it
    )
    return made
