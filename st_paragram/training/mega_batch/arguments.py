"""The arguments of the mega-batch trainer, with the defaults of `TrainingSettings`."""

from __future__ import annotations

from dataclasses import dataclass, field

from sentence_transformers import SentenceTransformerTrainingArguments

from st_paragram.errors import SettingsError
from st_paragram.training.settings import TrainingSettings

_DEFAULTS = TrainingSettings()


@dataclass
class MegaBatchTrainingArguments(SentenceTransformerTrainingArguments):
    """sentence-transformers' arguments with the mega-batch procedure's own; defaults as in EMNLP 2022.

    Args:
        megabatch_size: largest M, in mini-batches; the paper tunes over 60, 100, 140.
        anneal_interval: mini-batches after which M grows by one; 0 starts with the largest M.
        negatives_from_both_sides: look for negatives among all sentences of the mega-batch (paraphrases), instead of
            the opposite side's only (bitext).
        random_negatives: draw negatives from the opposite side at random, without mining; for comparison.
        mask_duplicates: pairs that share a text are never each other's negatives. False is the authors' behaviour.
        row_lazy_adam: train with `RowLazyAdam`; False takes `optim` (dense Adam over the whole table).
        compiled_step: use the compiled training step where it can be used (CPU, no clipping).
        mining_precision: what similarities are computed in while negatives are sought: "auto" (the fastest that the
            device has), "float32", "tf32", "bfloat16" or "int8".
    """

    megabatch_size: int = _DEFAULTS.megabatch_size
    anneal_interval: int = _DEFAULTS.anneal_interval
    negatives_from_both_sides: bool = _DEFAULTS.negatives == "both"
    random_negatives: bool = _DEFAULTS.negatives == "random"
    mask_duplicates: bool = _DEFAULTS.mask_duplicates
    row_lazy_adam: bool = _DEFAULTS.optimizer == "row-lazy"
    compiled_step: bool = True
    mining_precision: str = _DEFAULTS.mining_precision

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
        """Check the settings before anything is loaded.

        Raises:
            SettingsError: a setting outside its range, gradient accumulation, or several processes.
        """
        checked = ("megabatch_size", "anneal_interval", "mining_precision")
        TrainingSettings(**{name: getattr(self, name) for name in checked})
        if self.row_lazy_adam and self.weight_decay:
            raise SettingsError(
                f"weight_decay is {self.weight_decay}, which RowLazyAdam has not; set row_lazy_adam=False"
            )
        if self.random_negatives and self.negatives_from_both_sides:
            raise SettingsError("random_negatives and negatives_from_both_sides exclude each other; choose one")
        if self.gradient_accumulation_steps != 1:
            raise SettingsError(
                f"gradient_accumulation_steps is {self.gradient_accumulation_steps}: a mega-batch is a number of "
                "optimiser steps; set it to 1 and choose per_device_train_batch_size"
            )
        super().__post_init__()
        if self.world_size > 1 or self.n_gpu > 1:
            raise SettingsError(
                f"{max(self.world_size, self.n_gpu)} processes or devices: mega-batches are defined for one; start "
                "without torchrun and show one device (CUDA_VISIBLE_DEVICES=0)"
            )
