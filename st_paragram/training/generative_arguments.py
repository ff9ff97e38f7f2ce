"""The arguments of the trainer of generative models, with the defaults of `GenerativeSettings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from st_paragram.errors import SettingsError
from st_paragram.training.arguments import StoreTrainingArguments
from st_paragram.training.generative_settings import GenerativeSettings

_DEFAULTS = GenerativeSettings()


@dataclass
class GenerativeTrainingArguments(StoreTrainingArguments):
    """Arguments of `StoreTrainer` with what batches of tokens need; defaults as in EMNLP 2020.

    Args:
        batch_tokens: largest size of a batch, sentences times the longest length of the longer side.
        accumulate: batches of an update.
        anneal_updates: updates until the divergence has its full weight.
        precision: "float32", "bfloat16" or "auto": bfloat16 on a GPU that has it.
    """

    several_processes: ClassVar[bool] = True

    batch_tokens: int = _DEFAULTS.batch_tokens
    accumulate: int = _DEFAULTS.accumulate
    anneal_updates: int = _DEFAULTS.anneal_updates
    precision: str = _DEFAULTS.precision

    row_lazy_adam: bool = False
    num_train_epochs: float = _DEFAULTS.epochs
    learning_rate: float = _DEFAULTS.learning_rate
    lr_scheduler_type: str = _DEFAULTS.schedule
    adam_beta2: float = 0.98

    def __post_init__(self) -> None:
        """Check the arguments before anything is loaded.

        Raises:
            SettingsError: an argument outside its range, or what `StoreTrainingArguments` refuses.
        """
        checked = ("batch_tokens", "accumulate", "anneal_updates", "precision")
        GenerativeSettings(**{name: getattr(self, name) for name in checked})
        super().__post_init__()
        if self.precision == "bfloat16" and self.device.type == "cuda" and not torch.cuda.is_bf16_supported():
            raise SettingsError("precision is bfloat16, which this GPU has not; set it to float32")

    @property
    def in_bfloat16(self) -> bool:
        """Whether matrices are multiplied in bfloat16."""
        native = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        return self.precision == "bfloat16" or (self.precision == "auto" and native)
