"""A whole training: from a pair store to a saved model directory with its card."""

from __future__ import annotations

import json
import logging
import shutil
import time
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from sentence_transformers import SentenceTransformer
from transformers import set_seed

from st_paragram.data.pair_store import PairStore
from st_paragram.evaluation.correlation import correlate
from st_paragram.evaluation.development import Translations, development_evaluator, translation_accuracy
from st_paragram.evaluation.graded_pairs import GradedPairs
from st_paragram.files import write_json
from st_paragram.models import directory as model_directory
from st_paragram.models.card import model_card
from st_paragram.models.encoder import pipeline
from st_paragram.models.training_record import Correlation, Score, TrainingRecord, TranslationScore
from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.training import progress
from st_paragram.training.objectives import mega_batch_margin
from st_paragram.training.settings import TrainingSettings

logger = logging.getLogger(__name__)

TUNED_DROPOUT = (0.0, 0.1, 0.3)
TUNED_MEGABATCH_SIZE = (60, 100, 140)
_RESULT_FILE = "result.json"


@dataclass(frozen=True)
class TrainingReport:
    """Settings, seconds and rate of a training, and its development scores before and after.

    Translations have a score each before and after, if there were any.
    """

    settings: TrainingSettings
    seconds: float
    pairs_per_second: float
    before: Correlation
    after: Correlation
    translations: tuple[TranslationScore, ...] = ()


@dataclass(frozen=True)
class TrainingResult:
    """A trained pipeline and how it came about."""

    model: SentenceTransformer
    report: TrainingReport


def train(
    store: PairStore,
    settings: TrainingSettings,
    development: GradedPairs,
    checkpoints: str | Path,
    resume: bool = False,
    translations: Translations | None = None,
) -> TrainingResult:
    """Train on a store from N(0, 1).

    Args:
        store: the pairs; its vocabulary becomes the model's.
        settings: of the training.
        development: graded pairs that are scored now and then. Never test data.
        checkpoints: a folder for checkpoints, one at the end of each epoch and one on Ctrl-C.
        resume: go on from the newest checkpoint there.
        translations: held-out ones that are looked for now and then, too.

    Raises:
        SettingsError: there is no checkpoint to go on from, or settings and data contradict each other.
        KeyboardInterrupt: on Ctrl-C, after a checkpoint was written.
    """
    folder, checkpoint = Path(checkpoints), None
    set_seed(settings.seed)
    model = new_model(store, settings)
    before = correlate(model, development)
    found_before = _translation_scores(model, translations, "before training")
    evaluator = development_evaluator(development, translations)
    trainer = mega_batch_margin.trainer(model, store, settings, folder, evaluator)
    if resume:
        so_far, checkpoint = progress.resume(folder, asdict(settings), store)
    else:
        so_far = progress.begin(folder, asdict(settings), store)
    started = time.perf_counter()
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    finally:
        so_far.seconds += time.perf_counter() - started
        so_far.step_seconds += trainer.step_seconds
        so_far.pairs += trainer.pairs_trained
        so_far.write(folder)
    rate = so_far.pairs / max(so_far.step_seconds, 1e-9)
    after, found = correlate(model, development), _translation_scores(model, translations, "after training")
    report = TrainingReport(settings, so_far.seconds, rate, before, after, (*found_before, *found))
    return TrainingResult(model, report)


def _translation_scores(
    model: SentenceTransformer, translations: Translations | None, when: str
) -> tuple[TranslationScore, ...]:
    if translations is None:
        return ()
    accuracy = translation_accuracy(model, translations)
    return (TranslationScore(translations.name, len(translations), when, accuracy),)


def new_model(store: PairStore, settings: TrainingSettings) -> SentenceTransformer:
    """An untrained pipeline over the store's vocabulary."""
    embedding = SentencePieceEmbedding(store.tokenizer(), settings.dim, dropout=settings.dropout)
    return pipeline(embedding, None if settings.device == "auto" else settings.device)


def tune(
    store: PairStore,
    settings: TrainingSettings,
    development: GradedPairs,
    checkpoints: str | Path,
    resume: bool = False,
    translations: Translations | None = None,
) -> tuple[TrainingResult, list[TrainingReport]]:
    """Train the paper's grid, dropout x M; return the best by Pearson on the development pairs, and all reports.

    With `resume`, finished points of the grid are taken as they stand and the one under way goes on.
    """
    points: list[tuple[TrainingReport, Path]] = []
    for dropout, size in product(TUNED_DROPOUT, TUNED_MEGABATCH_SIZE):
        point = replace(settings, dropout=dropout, megabatch_size=size)
        folder = Path(checkpoints) / f"dropout-{dropout}-m-{size}"
        logger.info("tuning: dropout %s, M %d", dropout, size)
        if not (resume and (folder / _RESULT_FILE).is_file()):
            going_on = resume and progress.newest_checkpoint(folder) is not None
            _keep(train(store, point, development, folder, going_on, translations), folder)
        points.append((_kept(folder, point), folder))
    points.sort(key=lambda point: point[0].after.pearson, reverse=True)
    best, best_folder = points[0]
    return TrainingResult(model_directory.load(best_folder / "model"), best), [report for report, _ in points]


def _keep(result: TrainingResult, folder: Path) -> None:
    """Keep a point of the grid on disk, without its checkpoints."""
    model_directory.save(result.model, folder / "model", overwrite=True)
    values = {name: value for name, value in asdict(result.report).items() if name != "settings"}
    write_json(folder / _RESULT_FILE, values)
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)


def _kept(folder: Path, settings: TrainingSettings) -> TrainingReport:
    values = json.loads((folder / _RESULT_FILE).read_text(encoding="utf-8"))
    before, after = Correlation(**values["before"]), Correlation(**values["after"])
    found = tuple(TranslationScore(**score) for score in values.get("translations", ()))
    return TrainingReport(settings, values["seconds"], values["pairs_per_second"], before, after, found)


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
    count = len(development.grades)
    facts = TrainingRecord(
        name=output.name,
        languages=store.languages,
        data=data_description,
        pairs=len(store),
        preparation=store.settings,
        segmentation=store.segmentation.value,
        settings=asdict(result.report.settings),
        seconds=result.report.seconds,
        pairs_per_second=result.report.pairs_per_second,
        scores=[
            Score(development.name, count, "before training", result.report.before),
            Score(development.name, count, "after training", result.report.after),
        ],
        translations=result.report.translations,
    )
    return model_directory.save(result.model, output, model_card(facts), overwrite, training=facts)


def remove_checkpoints(checkpoints: str | Path) -> None:
    """Remove what a finished training no longer needs."""
    shutil.rmtree(checkpoints, ignore_errors=True)
