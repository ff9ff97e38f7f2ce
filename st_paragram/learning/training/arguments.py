"""Arguments of a training run on a pair store, and those that the settings of a family give."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from sentence_transformers import SentenceTransformerTrainingArguments

from st_paragram.errors import SettingsError
from st_paragram.learning.training.settings import TrainingSettings

_DEFAULTS = TrainingSettings()


@dataclass
class StoreTrainingArguments(SentenceTransformerTrainingArguments):
    """sentence-transformers' arguments for `StoreTrainer`; defaults as in EMNLP 2022.

    Args:
        in_bfloat16: Multiply matrices in bfloat16, where the procedure has any.
    """

    in_bfloat16: bool = False

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
        """Refuse what the steps of a store do not do."""
        if self.gradient_accumulation_steps != 1:
            raise SettingsError(
                f"gradient_accumulation_steps is {self.gradient_accumulation_steps}: the pairs of a step follow from "
                "its number; set it to 1 and choose per_device_train_batch_size"
            )
        if self.prompts:
            raise SettingsError(f"prompts are {self.prompts!r}, but stored texts are trained on as they are; set none")
        super().__post_init__()
        if (count := max(self.world_size, self.n_gpu)) > 1:
            raise SettingsError(
                f"{count} processes or devices: training takes one; start without torchrun, and show one device "
                "(CUDA_VISIBLE_DEVICES=0)"
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

    `folder` is for checkpoints, `warmup` the steps in which the learning rate grows (below 1, their share of all
    steps), `evaluate` says whether the model is evaluated now and then, and `others` override the rest.
    """
    names = {each.name for each in fields(kind)}
    values = {each.name: getattr(settings, each.name) for each in fields(settings) if each.name in names}
    warmed = settings.schedule == "constant" and warmup > 0
    values |= {
        "lr_scheduler_type": "constant_with_warmup" if warmed else settings.schedule,
        "warmup_steps": warmup,
        "eval_strategy": ("steps" if settings.evaluate_steps else "epoch") if evaluate else "no",
        "eval_steps": settings.evaluate_steps or None,
        "use_cpu": settings.device == "cpu" or (settings.device == "auto" and not torch.cuda.is_available()),
    }
    made = kind(str(folder), **(values | others))
    precision = getattr(settings, "precision", "float32")
    has_it = made.device.type != "cuda" or torch.cuda.is_bf16_supported()
    if precision == "bfloat16" and not has_it:
        raise SettingsError("precision is bfloat16, which this GPU does not support; set it to float32")
    made.in_bfloat16 = precision == "bfloat16" or (precision == "auto" and made.device.type == "cuda" and has_it)
    return made
