"""One training run: from a pair store to a trained pipeline with a report, and to a model directory with its card."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import SentenceTransformer
from transformers import set_seed

from st_paragram.core.encoding.record import Correlation, Score, TrainingRecord, TranslationScore
from st_paragram.core.families import entry_of_record, family_named
from st_paragram.core.pair_store import PairStore
from st_paragram.core.words import counted
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.card import from_record, render
from st_paragram.learning.models.sentence_transformers_encoder import batch_size
from st_paragram.learning.training import progress
from st_paragram.learning.training.development import development_evaluator, translation_accuracy
from st_paragram.learning.training.processes import is_main_process
from st_paragram.tools.evaluation.correlation import correlate
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.translations import Translations

if TYPE_CHECKING:
    from st_paragram.learning.training.family import MoreData, RunSettings


@dataclass(frozen=True)
class TrainingReport:
    """How a training run went.

    Attributes:
        settings: Of the run.
        seconds: Wall time, with evaluation and checkpoints; of all parts together if it was resumed.
        pairs_per_second: Of the steps alone.
        before: Correlation with the grades of the development pairs before training.
        after: The same after training.
        translations: Scores on held-out translations before and after training, if there were any.
        history: What was logged of the run, where its objective has several parts.
        tasks: Pairs of other tasks than translation, by task and language.
        tried: Of a point of a grid, the settings that are tried there, in words.
    """

    settings: RunSettings
    seconds: float
    pairs_per_second: float
    before: Correlation
    after: Correlation
    translations: tuple[TranslationScore, ...] = ()
    history: tuple[dict[str, float], ...] = ()
    tasks: dict[str, int] = field(default_factory=dict)
    tried: str = ""


@dataclass(frozen=True)
class Watched:
    """What a training run is watched with.

    Attributes:
        development: Graded pairs.
        translations: Held-out translations, if there are any.
    """

    development: GradedPairs
    translations: Translations | None = None


@dataclass(frozen=True)
class TrainingResult:
    """A trained pipeline and how it came about."""

    model: SentenceTransformer
    report: TrainingReport


def train(
    store: PairStore,
    settings: RunSettings,
    development: GradedPairs,
    checkpoints: str | Path,
    resume: bool = False,
    translations: Translations | None = None,
    more: MoreData | None = None,
) -> TrainingResult:
    """Train on a store, from N(0, 1) or from a model's rows.

    Args:
        store: The pairs; its vocabulary becomes the model's.
        settings: Of the run.
        development: Graded pairs that are scored now and then. Never test data.
        checkpoints: A folder for checkpoints, one at the end of each epoch and one on Ctrl-C.
        resume: Continue from the newest whole checkpoint there.
        translations: Held-out translations that are looked for now and then, too.
        more: What else there is to train on.

    Raises:
        SettingsError: There is no whole checkpoint to resume from, the device cannot be used, or settings, data and
            the model to begin with contradict each other.
        ModelDirectoryError: There is no model to begin with, or it is not an averaging model.
        StoreError: The store does not hold what was written into it.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    folder = Path(checkpoints)
    set_seed(settings.seed)
    objective = family_named(settings.family).objective()
    model = objective.new_model(store, settings)
    before, found_before = correlate(model, development), _translation_scores(model, translations, "before training")
    evaluator = development_evaluator(development, translations, batch_size(model))
    others, stores = ([], []) if more is None else ([more], list(more.all_stores))
    trainer = objective.trainer(model, store, settings, folder, evaluator, *others)
    open_progress = progress.resume if resume else progress.begin
    so_far = open_progress(folder, progress.values_of(settings), store, *stores)
    started = time.perf_counter()
    try:
        trainer.train(resume_from_checkpoint=resume)
    finally:
        so_far.seconds += time.perf_counter() - started
        so_far.step_seconds += trainer.step_seconds
        so_far.pairs += trainer.pairs_trained
        if is_main_process():
            so_far.write(folder)
    rate = so_far.pairs / max(so_far.step_seconds, 1e-9)
    after, found = correlate(model, development), _translation_scores(model, translations, "after training")
    history = tuple(trainer.state.log_history) if objective.HAS_HISTORY else ()
    sizes = {} if more is None else dict(more.sizes)
    report = TrainingReport(settings, so_far.seconds, rate, before, after, (*found_before, *found), history, sizes)
    return TrainingResult(objective.trained(trainer), report)


def _recorded(settings: RunSettings) -> dict[str, Any]:
    """What is kept of settings; a family that they do not show names itself, see `entry_of_record`."""
    values = progress.values_of(settings) | family_named(settings.family).recorded(settings)
    shown = entry_of_record(values)[0] == settings.family
    return values if shown else {"family": settings.family} | values


def _translation_scores(
    model: SentenceTransformer, translations: Translations | None, when: str
) -> tuple[TranslationScore, ...]:
    if translations is None:
        return ()
    accuracy = translation_accuracy(model, translations)
    return (TranslationScore(translations.name, len(translations), when, accuracy),)


def save(
    result: TrainingResult,
    store: PairStore,
    development: GradedPairs,
    output: str | Path,
    data_description: str,
    overwrite: bool = False,
) -> Path:
    """Save a trained model with its card and its `training.json`.

    Args:
        result: The trained pipeline and its report.
        store: What it was trained on.
        development: What it was scored on.
        output: The model directory to make.
        data_description: One line that says where the pairs come from.
        overwrite: Replace an existing directory.

    Returns:
        The directory.

    Raises:
        ModelDirectoryError: The directory exists, or cannot be made.
    """
    output, count = Path(output), len(development)
    record = TrainingRecord(
        name=output.name,
        languages=store.languages,
        data=data_description,
        pairs=len(store),
        preparation=store.settings,
        segmentation=store.tokenizer().options.get("segmentation", "none"),
        machine=f"{platform.machine()}, {counted(torch.get_num_threads(), 'thread')}",
        settings=_recorded(result.report.settings),
        seconds=result.report.seconds,
        pairs_per_second=result.report.pairs_per_second,
        scores=[
            Score(development.name, count, "before training", result.report.before),
            Score(development.name, count, "after training", result.report.after),
        ],
        translations=result.report.translations,
        history=result.report.history,
        tasks=result.report.tasks,
    )
    card = render(from_record(record, result.model.get_embedding_dimension()))
    return model_directory.save(result.model, output, card, overwrite, training=record)
