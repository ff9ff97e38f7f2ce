"""The objective of SP and P-SP: the margin loss, with negatives mined in mega-batches (ACL 2019, EMNLP 2022)."""

from __future__ import annotations

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator

from st_paragram.data.pair_store import PairStore
from st_paragram.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.training.mega_batch.arguments import MegaBatchTrainingArguments
from st_paragram.training.mega_batch.trainer import MegaBatchTrainer
from st_paragram.training.settings import TrainingSettings


def trainer(
    model: SentenceTransformer,
    store: PairStore,
    settings: TrainingSettings,
    folder: Path,
    evaluator: BaseEvaluator | None = None,
) -> MegaBatchTrainer:
    """The trainer of a run.

    Args:
        model: to be trained.
        store: the pairs.
        settings: of the run.
        folder: for checkpoints.
        evaluator: looks at the model now and then; without one nothing is evaluated.

    Raises:
        SettingsError: settings and model contradict each other.
        StoreError: a store that cannot be mined.
        ModelDirectoryError: a model that no model directory can hold.
    """
    loss = MarginHardNegativeLoss(model, settings.margin)
    return MegaBatchTrainer(model, arguments(settings, folder, evaluator is not None), store, loss, evaluator=evaluator)


def arguments(settings: TrainingSettings, folder: Path, evaluate: bool = True) -> MegaBatchTrainingArguments:
    """The trainer's arguments for these settings; `evaluate` now and then, or never."""
    strategy = ("steps" if settings.evaluate_steps else "epoch") if evaluate else "no"
    return MegaBatchTrainingArguments(
        str(folder),
        seed=settings.seed,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=_schedule(settings),
        warmup_steps=settings.warmup,
        per_device_train_batch_size=settings.batch_size,
        megabatch_size=settings.megabatch_size,
        anneal_interval=settings.anneal_interval,
        negatives_from_both_sides=settings.negatives == "both",
        random_negatives=settings.negatives == "random",
        mask_duplicates=settings.mask_duplicates,
        row_lazy_adam=settings.optimizer == "row-lazy" and settings.encoder != "blstm",  # which trains a table alone
        scramble=settings.scramble,
        mining_precision=settings.mining_precision,
        eval_strategy=strategy,
        eval_steps=settings.evaluate_steps or None,
        use_cpu=settings.device == "cpu" or not torch.cuda.is_available(),
    )


def _schedule(settings: TrainingSettings) -> str:
    """The schedule by transformers' name."""
    warmed = settings.schedule == "constant" and settings.warmup > 0
    return "constant_with_warmup" if warmed else settings.schedule
