"""The arguments of the trainer of dual encoders, with the defaults of `DualEncoderSettings`."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.training.dual_encoder_settings import DualEncoderSettings
from st_paragram.training.mixed_precision import MixedPrecisionArguments

_DEFAULTS = DualEncoderSettings()


@dataclass
class DualEncoderTrainingArguments(MixedPrecisionArguments):
    """Arguments of `StoreTrainer` for dual encoders, whose run is one epoch of as many steps as are asked for."""

    num_train_epochs: float = 1.0
    learning_rate: float = _DEFAULTS.learning_rate
    lr_scheduler_type: str = _DEFAULTS.schedule
