"""The arguments of the trainer of dual encoders, with the defaults of `DualEncoderSettings`."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.learning.training.mixed_precision import MixedPrecisionArguments

_DEFAULTS = DualEncoderSettings()


@dataclass
class DualEncoderTrainingArguments(MixedPrecisionArguments):
    """Arguments of `StoreTrainer` for dual encoders, whose run is one epoch of as many steps as are asked for.

    Args:
        mined_negatives: beside the other pairs of its batch, a text is told apart from its hardest negative among all
            batches that were drawn together.
        mining_precision: what similarities are computed in while these are sought, as of `MegaBatchTrainingArguments`.
    """

    num_train_epochs: float = 1.0
    learning_rate: float = _DEFAULTS.learning_rate
    lr_scheduler_type: str = _DEFAULTS.schedule
    mined_negatives: bool = _DEFAULTS.negatives == "mined"
    mining_precision: str = "auto"
