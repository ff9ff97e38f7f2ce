"""Arguments of a training run on pair stores, with the defaults of `TrainingSettings`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from sentence_transformers import SentenceTransformerTrainingArguments

from st_paragram.errors import SettingsError
from st_paragram.learning.training.settings import TrainingSettings

_DEFAULTS = TrainingSettings()


@dataclass
class StoreTrainingArguments(SentenceTransformerTrainingArguments):
    """sentence-transformers' arguments for `StoreTrainer`; defaults as in EMNLP 2022.

    Args:
        row_lazy_adam: train a table of token embeddings, and nothing else, with `RowLazyAdam`; False takes `optim`
            (dense Adam) for all parameters.
    """

    #: Whether a trainer shares its steps out among the processes of torchrun or accelerate.
    several_processes: ClassVar[bool] = False

    row_lazy_adam: bool = _DEFAULTS.optimizer == "row-lazy"

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
        """Check the arguments before anything is loaded.

        Raises:
            SettingsError: weight decay with `RowLazyAdam`, gradient accumulation, prompts, or several processes.
        """
        if self.row_lazy_adam and self.weight_decay:
            raise SettingsError(
                f"weight_decay is {self.weight_decay}, which RowLazyAdam does not support; set row_lazy_adam=False"
            )
        if self.gradient_accumulation_steps != 1:
            raise SettingsError(
                f"gradient_accumulation_steps is {self.gradient_accumulation_steps}: the pairs of a step follow from "
                "its number; set it to 1 and choose per_device_train_batch_size"
            )
        if self.prompts:
            raise SettingsError(f"prompts are {self.prompts!r}, but stored texts are trained on as they are; set none")
        super().__post_init__()
        if self.n_gpu > 1 or (self.world_size > 1 and not self.several_processes):
            raise SettingsError(
                f"{max(self.world_size, self.n_gpu)} processes or devices: this training takes one; start without "
                "torchrun and show one device (CUDA_VISIBLE_DEVICES=0)"
            )


Arguments = TypeVar("Arguments", bound=StoreTrainingArguments)


def arguments_of(
    kind: type[Arguments],
    settings: Any,  # noqa: ANN401
    folder: Path,
    warmup: float,
    evaluate: bool,
    **others: Any,  # noqa: ANN401
) -> Arguments:
    """The arguments of a trainer for the settings of a run: a field with the name of a setting gets its value.

    Args:
        kind: the class of the arguments.
        settings: the settings of any family.
        folder: where checkpoints go.
        warmup: steps in which the learning rate grows; below 1, their share of all steps.
        evaluate: whether the model is evaluated now and then.
        others: arguments whose names differ from those of settings; they override the rest.

    Raises:
        SettingsError: as `kind` does.
    """
    names = {each.name for each in fields(kind)}
    values = {each.name: getattr(settings, each.name) for each in fields(settings) if each.name in names}
    warmed = settings.schedule == "constant" and warmup > 0
    values |= {
        "lr_scheduler_type": "constant_with_warmup" if warmed else settings.schedule,
        "warmup_steps": warmup,
        "eval_strategy": ("steps" if settings.evaluate_steps else "epoch") if evaluate else "no",
        "eval_steps": settings.evaluate_steps or None,
        "use_cpu": settings.device == "cpu" or not torch.cuda.is_available(),
    }
    return kind(str(folder), **(values | others))


@dataclass
class MixedPrecisionArguments(StoreTrainingArguments):
    """Arguments of `StoreTrainer` for several processes, with a precision.

    Args:
        precision: "float32", "bfloat16" or "auto": bfloat16 on a GPU that has it.
    """

    several_processes: ClassVar[bool] = True

    precision: str = "auto"

    row_lazy_adam: bool = False

    def __post_init__(self) -> None:
        """Check the arguments before anything is loaded.

        Raises:
            SettingsError: a precision that the device does not have, or what `StoreTrainingArguments` refuses.
        """
        super().__post_init__()
        if self.precision == "bfloat16" and self.device.type == "cuda" and not torch.cuda.is_bf16_supported():
            raise SettingsError("precision is bfloat16, which this GPU does not support; set it to float32")

    @property
    def in_bfloat16(self) -> bool:
        """Whether matrices are multiplied in bfloat16."""
        native = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        return self.precision == "bfloat16" or (self.precision == "auto" and native)
