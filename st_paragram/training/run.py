"""A whole training: from a pair store to a saved model directory with its card."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
import yaml
from sentence_transformers import SentenceTransformer
from transformers import set_seed
from transformers.trainer_utils import get_last_checkpoint

from st_paragram import model_directory
from st_paragram.data.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.evaluation.sts import Correlation, GradedPairs, correlate, development_evaluator
from st_paragram.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.model_card import Score, TrainingFacts, model_card
from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.training.arguments import MegaBatchTrainingArguments
from st_paragram.training.trainer import MegaBatchTrainer

logger = logging.getLogger(__name__)

TUNED_DROPOUT = (0.0, 0.1, 0.3)
TUNED_MEGABATCH_SIZE = (60, 100, 140)


@dataclass(frozen=True)
class TrainingSettings:
    """What a training is made of; the defaults are the paper's (EMNLP 2022, section 3 and appendix).

    Args:
        dim: components of an embedding.
        dropout: probability of dropping a component of a token's embedding in training.
        margin: δ of the loss.
        learning_rate: of Adam, constant.
        epochs: passes over the pairs; fractions allowed.
        batch_size: pairs of a mini-batch.
        megabatch_size: largest M, in mini-batches.
        anneal_interval: mini-batches after which M grows by one.
        negatives: "opposite" (bitext) or "both" (paraphrases): the sides of the mega-batch negatives come from.
        mask_duplicates: pairs that share a text give each other no negatives.
        optimizer: "row-lazy" or "dense" Adam.
        seed: of everything random.
        evaluate_steps: steps between evaluations on the development pairs; 0: at the end of each epoch.
        device: torch device; chosen by torch if not given.
    """

    dim: int = 1024
    dropout: float = 0.0
    margin: float = 0.4
    learning_rate: float = 1e-3
    epochs: float = 25
    batch_size: int = 128
    megabatch_size: int = 60
    anneal_interval: int = 150
    negatives: str = "opposite"
    mask_duplicates: bool = True
    optimizer: str = "row-lazy"
    seed: int = 0
    evaluate_steps: int = 0
    device: str | None = None

    def __post_init__(self) -> None:
        """Check what nobody else checks.

        Raises:
            SettingsError: a value outside its range.
        """
        if self.dim < 1 or self.batch_size < 2 or self.epochs <= 0:
            seen = f"dim {self.dim}, batch_size {self.batch_size}, epochs {self.epochs}"
            raise SettingsError(f"{seen}: they must be at least 1, at least 2 and above 0")
        for name, known in (("negatives", ("opposite", "both")), ("optimizer", ("row-lazy", "dense"))):
            if getattr(self, name) not in known:
                raise SettingsError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")

    @classmethod
    def read(cls, path: str | Path | None, **overrides: Any) -> TrainingSettings:  # noqa: ANN401
        """Settings of a YAML file, with the overrides that are not None.

        Raises:
            SettingsError: the file is missing or no mapping, or has a key that is no setting.
        """
        values: dict[str, Any] = {}
        if path is not None:
            try:
                values = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
            except (OSError, yaml.YAMLError) as error:
                raise SettingsError(f"{path}: not readable as YAML ({str(error).splitlines()[0]})") from error
            if not isinstance(values, dict):
                raise SettingsError(f"{path}: a mapping of settings is expected, e.g. `dim: 300`")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise SettingsError(f"{path}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
        try:
            return cls(**{**values, **{name: value for name, value in overrides.items() if value is not None}})
        except TypeError as error:
            raise SettingsError(f"{path or 'settings'}: a value of the wrong type ({error})") from error


@dataclass(frozen=True)
class TrainingResult:
    """A trained pipeline, its seconds and rate of training, and its development scores before and after."""

    model: SentenceTransformer
    settings: TrainingSettings
    seconds: float
    pairs_per_second: float
    before: Correlation
    after: Correlation


def train(
    store: PairStore,
    settings: TrainingSettings,
    development: GradedPairs,
    checkpoints: str | Path,
    resume: bool = False,
) -> TrainingResult:
    """Train on a store from N(0, 1).

    Args:
        store: the pairs; its vocabulary becomes the model's.
        settings: of the training.
        development: graded pairs that are scored now and then. Never test data.
        checkpoints: a folder for checkpoints, one at the end of each epoch and one on Ctrl-C.
        resume: go on from the newest checkpoint there.

    Raises:
        SettingsError: there is no checkpoint to go on from, or settings and data contradict each other.
        KeyboardInterrupt: on Ctrl-C, after a checkpoint was written.
    """
    checkpoint = _checkpoint(Path(checkpoints), resume)
    set_seed(settings.seed)
    model = new_model(store, settings)
    before = correlate(model, development)
    trainer = MegaBatchTrainer(
        model,
        _arguments(settings, Path(checkpoints)),
        store,
        loss=MarginHardNegativeLoss(model, settings.margin),
        evaluator=development_evaluator(development),
    )
    started = time.perf_counter()
    trainer.train(resume_from_checkpoint=checkpoint)
    seconds = time.perf_counter() - started
    return TrainingResult(model, settings, seconds, trainer.pairs_per_second, before, correlate(model, development))


def new_model(store: PairStore, settings: TrainingSettings) -> SentenceTransformer:
    """An untrained pipeline over the store's vocabulary."""
    embedding = SentencePieceEmbedding(store.vocabulary(), settings.dim, dropout=settings.dropout)
    return model_directory.pipeline(embedding, settings.device)


def tune(
    store: PairStore, settings: TrainingSettings, development: GradedPairs, checkpoints: str | Path
) -> list[TrainingResult]:
    """Train the paper's grid, dropout x M, and return the results, best on the development pairs first.

    Models other than the best are dropped as the grid goes on, so that memory stays bounded.
    """
    results: list[TrainingResult] = []
    for dropout, size in product(TUNED_DROPOUT, TUNED_MEGABATCH_SIZE):
        point = replace(settings, dropout=dropout, megabatch_size=size)
        logger.info("tuning: dropout %s, M %d", dropout, size)
        result = train(store, point, development, Path(checkpoints) / f"dropout-{dropout}-m-{size}")
        results.append(result)
        results.sort(key=lambda r: r.after.pearson, reverse=True)
        results = [results[0], *(replace(r, model=results[0].model) for r in results[1:])]
    return results


def save(
    result: TrainingResult,
    store: PairStore,
    development: GradedPairs,
    output: str | Path,
    data_description: str,
    overwrite: bool = False,
) -> Path:
    """Save a trained model with its card; see `model_directory.save`."""
    output = Path(output)
    facts = TrainingFacts(
        name=output.name,
        languages=store.languages,
        data=data_description,
        pairs=len(store),
        preparation=store.settings,
        segmentation=store.segmentation.value,
        settings=asdict(result.settings),
        seconds=result.seconds,
        pairs_per_second=result.pairs_per_second,
        scores=[
            Score(development.name, len(development.grades), "before training", result.before),
            Score(development.name, len(development.grades), "after training", result.after),
        ],
    )
    return model_directory.save(result.model, output, model_card(facts), overwrite)


def remove_checkpoints(checkpoints: str | Path) -> None:
    """Remove what a finished training no longer needs."""
    shutil.rmtree(checkpoints, ignore_errors=True)


def _checkpoint(folder: Path, resume: bool) -> str | None:
    newest = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    if resume and newest is None:
        raise SettingsError(f"{folder}: no checkpoint to resume from; train without --resume")
    if newest and not resume:
        raise SettingsError(f"{newest}: left by an earlier training; go on with --resume, or remove {folder}")
    return newest


def _arguments(settings: TrainingSettings, checkpoints: Path) -> MegaBatchTrainingArguments:
    return MegaBatchTrainingArguments(
        str(checkpoints),
        seed=settings.seed,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        per_device_train_batch_size=settings.batch_size,
        megabatch_size=settings.megabatch_size,
        anneal_interval=settings.anneal_interval,
        negatives_from_both_sides=settings.negatives == "both",
        mask_duplicates=settings.mask_duplicates,
        row_lazy_adam=settings.optimizer == "row-lazy",
        eval_strategy="steps" if settings.evaluate_steps else "epoch",
        eval_steps=settings.evaluate_steps or None,
        use_cpu=settings.device == "cpu" or not torch.cuda.is_available(),
    )
