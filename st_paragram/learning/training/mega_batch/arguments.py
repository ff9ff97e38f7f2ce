"""The arguments of the mega-batch trainer, with the defaults of `TrainingSettings`."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.errors import SettingsError
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.settings import TrainingSettings

_DEFAULTS = TrainingSettings()


@dataclass
class MegaBatchTrainingArguments(StoreTrainingArguments):
    """Arguments of `StoreTrainer` with the mega-batch procedure's own; defaults as in EMNLP 2022.

    Args:
        megabatch_size: largest M, in mini-batches; the paper tunes over 60, 100, 140.
        anneal_interval: mini-batches after which M grows by one; 0 starts with the largest M.
        negatives_from_both_sides: look for negatives among all sentences of the mega-batch (paraphrases), instead of
            the opposite side's only (bitext).
        random_negatives: draw negatives from the opposite side at random, without mining; for comparison.
        mask_duplicates: pairs that share a text are never each other's negatives. False is the authors' behavior.
        scramble: probability that a sentence's ids are put in random order, see `mega_batch.scrambled`.
        compiled_step: use the compiled training step where it can be used (CPU, no clipping).
        mining_precision: what similarities are computed in while negatives are sought: "auto" (the fastest that the
            device has), "float32", "tf32", "bfloat16" or "int8".
        margin_weight: weight of the margin loss; 0 leaves it out, and seeks no negatives.
        teacher: folder of a teacher's vectors of the store, see `mega_batch.teacher`; empty for none.
        teacher_weight: weight of the distance from the teacher's vectors in the loss.
        teacher_every: of the pairs of a mini-batch, every so manieth is compared with the teacher's vectors.

    Example:
        >>> from st_paragram import MegaBatchTrainingArguments
        >>> MegaBatchTrainingArguments("checkpoints", num_train_epochs=10, megabatch_size=20).megabatch_size
        20
    """

    megabatch_size: int = _DEFAULTS.megabatch_size
    anneal_interval: int = _DEFAULTS.anneal_interval
    negatives_from_both_sides: bool = _DEFAULTS.negatives == "both"
    random_negatives: bool = _DEFAULTS.negatives == "random"
    mask_duplicates: bool = _DEFAULTS.mask_duplicates
    scramble: float = 0.0
    compiled_step: bool = True
    mining_precision: str = _DEFAULTS.mining_precision
    margin_weight: float = _DEFAULTS.margin_weight
    teacher: str = _DEFAULTS.teacher
    teacher_weight: float = _DEFAULTS.teacher_weight
    teacher_every: int = _DEFAULTS.teacher_every

    def __post_init__(self) -> None:
        """Check the arguments before anything is loaded.

        Raises:
            SettingsError: an argument outside its range, contradictions, or what `StoreTrainingArguments` refuses.
        """
        checked = ["megabatch_size", "anneal_interval", "mining_precision"]
        checked += ["margin_weight", "teacher", "teacher_weight", "teacher_every"]
        TrainingSettings(**{name: getattr(self, name) for name in checked})
        if not 0 <= self.scramble <= 1:
            raise SettingsError(f"scramble is {self.scramble}; it must be at least 0 and at most 1")
        if self.random_negatives and self.negatives_from_both_sides:
            raise SettingsError("random_negatives and negatives_from_both_sides exclude each other; choose one")
        super().__post_init__()
