"""The arguments of the trainer of generative models, with the defaults of `GenerativeSettings`."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.learning.training.mixed_precision import MixedPrecisionArguments

_DEFAULTS = GenerativeSettings()


@dataclass
class GenerativeTrainingArguments(MixedPrecisionArguments):
    """Arguments of `StoreTrainer` with what batches of tokens need; defaults as in EMNLP 2020.

    Args:
        batch_tokens: largest size of a batch, sentences times the longest length of the longer side.
        accumulate: batches of an update.
        anneal_updates: updates until the divergence has its full weight.
        held_out: pairs, the last ones of the store, that are not trained on but evaluated; at most a twentieth of all.
    """

    batch_tokens: int = _DEFAULTS.batch_tokens
    accumulate: int = _DEFAULTS.accumulate
    anneal_updates: int = _DEFAULTS.anneal_updates
    held_out: int = 0
    num_train_epochs: float = _DEFAULTS.epochs
    learning_rate: float = _DEFAULTS.learning_rate
    lr_scheduler_type: str = _DEFAULTS.schedule
    adam_beta2: float = 0.98

    def __post_init__(self) -> None:
        """Check the arguments before anything is loaded.

        Raises:
            SettingsError: an argument outside its range, or what `StoreTrainingArguments` refuses.
        """
        checked = ("batch_tokens", "accumulate", "anneal_updates", "held_out", "precision")
        GenerativeSettings(**{name: getattr(self, name) for name in checked})
        super().__post_init__()
