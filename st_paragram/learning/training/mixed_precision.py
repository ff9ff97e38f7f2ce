"""Arguments of trainers that multiply matrices in bfloat16 where a GPU has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from st_paragram.errors import SettingsError
from st_paragram.learning.training.arguments import StoreTrainingArguments


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
            raise SettingsError("precision is bfloat16, which this GPU has not; set it to float32")

    @property
    def in_bfloat16(self) -> bool:
        """Whether matrices are multiplied in bfloat16."""
        native = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        return self.precision == "bfloat16" or (self.precision == "auto" and native)
