"""One training run: from a pair store to a trained pipeline with a report, and to a model directory with its card."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from transformers import set_seed

from st_paragram.data.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.evaluation.correlation import correlate
from st_paragram.evaluation.development import development_evaluator, translation_accuracy
from st_paragram.evaluation.graded_pairs import GradedPairs
from st_paragram.evaluation.translations import Translations
from st_paragram.models import directory as model_directory
from st_paragram.models.card import model_card
from st_paragram.models.encoder import pipeline
from st_paragram.models.recurrent import recurrent_pipeline
from st_paragram.models.training_record import Correlation, Score, TrainingRecord, TranslationScore
from st_paragram.modules.sentencepiece_embedding import token_embedding
from st_paragram.tokenizers.base import Tokenizer
from st_paragram.tokenizers.bilingual import BilingualTokenizer
from st_paragram.training import progress
from st_paragram.training.initial_rows import initial_rows
from st_paragram.training.objectives import mega_batch_margin
from st_paragram.training.settings import TOKENS_OF, Encoder, TrainingSettings


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
    """Train on a store, from N(0, 1) or from a model's rows.

    Args:
        store: The pairs; its vocabulary becomes the model's.
        settings: Of the run.
        development: Graded pairs that are scored now and then. Never test data.
        checkpoints: A folder for checkpoints, one at the end of each epoch and one on Ctrl-C.
        resume: Continue from the newest whole checkpoint there.
        translations: Held-out translations that are looked for now and then, too.

    Raises:
        SettingsError: There is no whole checkpoint to resume from, the device cannot be used, or settings, data and
            the model to begin with contradict each other.
        ModelDirectoryError: There is no model to begin with, or it is no averaging model.
        StoreError: The store does not hold what was written into it.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    folder = Path(checkpoints)
    set_seed(settings.seed)
    model = new_model(store, settings)
    before, found_before = correlate(model, development), _translation_scores(model, translations, "before training")
    evaluator = development_evaluator(development, translations)
    trainer = mega_batch_margin.trainer(model, store, settings, folder, evaluator)
    open_progress = progress.resume if resume else progress.begin
    so_far = open_progress(folder, asdict(settings), store)
    started = time.perf_counter()
    try:
        trainer.train(resume_from_checkpoint=resume)
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
    """The model over the store's tokenizer that training begins with.

    Raises:
        SettingsError: The device cannot be used, the store's tokenizer is not what the encoder reads, or the model to
            begin with does not fit.
        ModelDirectoryError: There is no such model, or no averaging model.
    """
    check_device(settings.device)
    tokenizer = store.tokenizer()
    check_tokens(tokenizer, settings.encoder, store.path)
    device = None if settings.device == "auto" else settings.device
    weights = initial_rows(tokenizer, settings.init, settings.dim) if settings.init else None
    embedding = token_embedding(tokenizer, None if settings.init else settings.dim, weights, settings.dropout)
    if settings.encoder == "blstm":
        return recurrent_pipeline(embedding, settings.hidden_dim, device)
    return pipeline(embedding, device)


def check_tokens(tokenizer: Tokenizer, encoder: Encoder, store: Path) -> None:
    """Refuse a store whose ids are not what an encoder reads.

    Raises:
        SettingsError: They are those of another tokenizer.
    """
    kind = tokenizer.inner_kind if isinstance(tokenizer, BilingualTokenizer) else tokenizer.kind
    if kind != TOKENS_OF[encoder]:
        fitting = " or ".join(name for name, tokens in TOKENS_OF.items() if tokens == kind)
        raise SettingsError(
            f"{store}: a store of {kind} ids, and the encoder {encoder} reads {TOKENS_OF[encoder]} ids; choose the "
            f"encoder {fitting}, or prepare the text with tokens {TOKENS_OF[encoder]}"
        )
    if encoder == "blstm" and isinstance(tokenizer, BilingualTokenizer):
        raise SettingsError(
            f"{store}: a vocabulary of each language; blstm reads a joint one, prepare the text with it"
        )


def check_device(name: str) -> None:
    """Refuse a torch device that cannot be used here; "auto" can.

    Raises:
        SettingsError: It cannot be used.
    """
    try:
        if name != "auto":
            torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise SettingsError(f"device is {name!r}, which cannot be used here ({reason}); try cpu") from error


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
        settings=asdict(result.report.settings),
        seconds=result.report.seconds,
        pairs_per_second=result.report.pairs_per_second,
        scores=[
            Score(development.name, count, "before training", result.report.before),
            Score(development.name, count, "after training", result.report.after),
        ],
        translations=result.report.translations,
    )
    card = model_card(record, result.model.get_embedding_dimension())
    return model_directory.save(result.model, output, card, overwrite, training=record)
