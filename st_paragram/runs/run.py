"""A whole training run: its description, early checks, and the steps from pairs to a model
directory.

Nothing here needs torch, which takes seconds to import, before training starts.
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.files import folder_for_file
from st_paragram.core.formatting import counted, in_words
from st_paragram.core.languages import both_sides, codes_of_sides
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    check_free,
    read_configuration,
)
from st_paragram.core.model_directory.find import find
from st_paragram.core.model_directory.model_files import check_initial_dimension
from st_paragram.core.model_directory.record import (
    TrainingRecord,
    read_training_record,
)
from st_paragram.core.outputs import output_lock
from st_paragram.core.pair_store import PairStore
from st_paragram.core.settings import check_used
from st_paragram.errors import SettingsError, TextError, refused
from st_paragram.learning.family import Family
from st_paragram.learning.training.checkpoints import (
    check_folder,
    check_settings,
    complete_checkpoints,
    create_folder,
    newest_checkpoint,
    remove_checkpoints,
)
from st_paragram.runs.families import facts_of, family_named
from st_paragram.runs.training_data import TrainingData, choose_data

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
    from st_paragram.learning.training.trainer import StoreTrainer
    from st_paragram.runs.development import Development
    from st_paragram.tools.evaluation.files import GradedPairs, Translations
    from st_paragram.tools.preparation.settings import PrepareSettings

logger = logging.getLogger(__name__)

_FEW = 5_000
_TOO_FEW = (
    "WARNING: {:,} pairs are few: the model will know only the words of this text. A usable model"
    " needs about 30,000; `st-paragram bitext` downloads public text"
)


@dataclass(frozen=True)
class TrainingRun:
    """Description of a training run.

    Attributes:
        language: The language other than English ("en" for English paraphrases), or the languages
            of both sides, as in `PrepareSettings`: ("fr", "de").
        output: Output model directory.
        data: A pair store, texts, or "built-in"; see `choose_data`.
        description: Origin of the pairs for the card, in one line; None: the names of the files.
        config: Name of a configuration, or a YAML file; None: `default_config`, or the one for the
            built-in bitext.
        default_config: Configuration used by default; None: the family's.
        family: Name of the model family: psp, bgt or muse.
        more: Additional data for this family.
        overrides: Settings that take precedence over the configuration.
        vocab_size: Vocabulary size for text data; None: as chosen by `PrepareSettings`.
        drop_invalid: Drop unreadable rows of texts instead of refusing the text.
        workers: Number of processes for text preparation.
        checks: Warn of likely mistakes in texts: a header, equal sides, wrong languages, shifted
            rows.
        development: File of graded pairs to score during training; None: built-in pairs.
        translations: File of held-out translations to score during training; None: P-SP holds out a
            twentieth of its pairs, at most 1,000.
        force_test_set: Allow known test sets as `development` or `translations`.
        resume: Continue from the last checkpoint.
        overwrite: Replace an existing model directory.
        columns: Columns of texts that are tables, see `choose_data`.

    Examples:
        >>> from pathlib import Path
        >>> from st_paragram import TrainingRun
        >>> TrainingRun("es", Path("p-sp-new"), ["built-in"], config="small").settings.dim
        300
    """

    language: str | tuple[str, str]
    output: Path  # a str becomes a Path, like `development` and `translations`
    data: str | Sequence[str] = ()
    description: str | None = None
    config: str | Path | None = None
    default_config: str | None = None
    family: str = "psp"
    more: Any = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    vocab_size: int | None = None
    drop_invalid: bool = False
    workers: int = 1
    checks: bool = True
    development: Path | None = None
    translations: Path | None = None
    force_test_set: bool = False
    resume: bool = False
    overwrite: bool = False
    columns: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        """Convert names of files to paths, and refuse an output without a name."""
        for name in ("output", "development", "translations"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, Path(value))
        if self.output.name in ("", ".."):
            raise SettingsError(
                f"{self.output}: the folder cannot be created; choose another place"
            )

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of both sides of the pairs."""
        return both_sides(self.language)

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints; those of this run are removed when the model is saved."""
        return self.output.with_name(f"{self.output.name}.checkpoints")

    @cached_property
    def kind(self) -> Family:
        """The family."""
        return family_named(self.family)

    @cached_property
    def source(self) -> TrainingData:
        """The training data, after early checks."""
        return choose_data(self.language, self.data, self.drop_invalid, self.columns)

    @cached_property
    def chosen_config(self) -> str:
        """The name or file of the configuration that applies."""
        if self.config:
            return str(self.config)
        if self.source.built_in:
            return self.kind.built_in_config
        return self.default_config or self.kind.default_config

    @cached_property
    def settings(self) -> Any:
        """The training settings: configuration and overrides.

        A model to continue from sets the dimension, unless it is given.
        """
        settings = self.kind.read_settings(self.chosen_config, self.overrides)
        is_given = "dim" in self.overrides or self.chosen_config not in self.kind.configs
        encoder = self.kind.encoder_to_continue(settings)
        if encoder is None or is_given:
            return settings
        overrides = {**self.overrides, "dim": encoder.dimension}
        return self.kind.read_settings(self.chosen_config, overrides)

    @cached_property
    def vocabulary(self) -> SentencePieceTokenizer | None:
        """The vocabulary of the model to continue from.

        None if it does not know the languages, or a vocabulary size is given.
        """
        if self.source.store or self.vocab_size is not None:
            return None
        encoder = self.kind.encoder_to_continue(self.settings)
        if encoder is None:
            return None
        record = read_training_record(find(self.settings.init))
        if record is None:
            return None
        if not set(codes_of_sides(self.languages)) <= set(codes_of_sides(record.languages)):
            return None
        return cast("SentencePieceTokenizer", encoder.tokenizer)

    @cached_property
    def preparation(self) -> PrepareSettings:
        """The settings for text preparation."""
        from st_paragram.tools.preparation.settings import PrepareSettings

        options = {
            "tokens": self.settings.tokens,
            "vocab_size": self.vocab_size,
            "drop_invalid": self.drop_invalid,
        }
        if self.vocabulary:
            options |= self.vocabulary.options
        return PrepareSettings(self.languages, **options)

    def store(self) -> PairStore:
        """Return the pairs, after preparation if they are texts."""
        if self.source.store:
            return PairStore(self.source.store)
        return PairStore(self.source.prepared(self.preparation, self.workers, self.vocabulary))

    def check(self) -> None:
        """Check everything that can be checked without torch and before text is prepared."""
        self.check_free()
        self.check_inputs()
        self.check_checkpoints()

    def check_inputs(self) -> None:
        """Check settings and data, as far as that needs neither torch nor prepared text."""
        processes = os.environ.get("WORLD_SIZE", "1")
        if processes not in ("", "1"):
            raise SettingsError(
                f"{processes} processes, but training uses only one; start without torchrun"
            )
        if self.workers < 1:
            raise SettingsError(f"workers is {self.workers}; it must be at least 1")
        for path in (self.development, self.translations):
            if path is None:
                continue
            if wrong := folder_for_file(path):
                raise TextError(f"{wrong}; name a file")
            if not path.exists():
                raise TextError(f"{path}: no such file; check the path")
        self.kind.check_languages(self.languages)
        self.kind.check_data(self.more, self.settings)
        check_used(self.settings, self.overrides)
        if self.checks and self.source.texts:
            from st_paragram.tools.suspicions import warn_of_suspicions

            warn_of_suspicions(self.source.texts)
        if self.settings.init:
            self._check_initial_model()
        if not self.source.store:
            _ = self.preparation
        elif self.vocab_size is not None:
            raise SettingsError(
                f"vocab_size is {self.vocab_size}, but {self.source.store} has a vocabulary; leave"
                " vocab_size out"
            )

    def _check_initial_model(self) -> None:
        """Refuse a missing model to start from, and an averaging model of another dimension."""
        name = self.settings.init
        folder = find(name)
        if read_configuration(folder).architecture == AVERAGING:
            dimension = Encoder(folder).dimension
            check_initial_dimension(self.settings.dim, model=name, model_dim=dimension)

    def check_free(self) -> None:
        """Refuse an existing output that must not or cannot be replaced."""
        check_free(self.output, self.overwrite)

    def check_checkpoints(self) -> None:
        """Refuse to resume without a checkpoint or with other settings, and to start where other
        files are.
        """
        if self.resume:
            check_settings(newest_checkpoint(self.checkpoints), asdict(self.settings))
        else:
            check_folder(self.checkpoints)

    @contextmanager
    def started(self) -> Iterator[None]:
        """Check the run, and lock its output and its folder of checkpoints within the block."""
        self.check()
        with output_lock(self.output, self.check_free):
            self.check_checkpoints()  # under the lock, so that they do not belong to an active run
            create_folder(self.checkpoints)
            try:
                yield
            except BaseException as error:
                if not complete_checkpoints(self.checkpoints):
                    remove_checkpoints(self.checkpoints)
                elif isinstance(error, KeyboardInterrupt):
                    where = f"checkpoint saved in {self.checkpoints}"
                    logger.warning(f"{where}; to continue, repeat the command with --resume")
                raise

    def save(self, trainer: StoreTrainer, development: Development) -> TrainingRecord:
        """Save the trained model with its card and record, and remove the checkpoints.

        Args:
            trainer: The trainer after training.
            development: Scores before and after training.
        """
        record = _save(self, trainer.trained, trainer, development)
        remove_checkpoints(self.checkpoints)
        return record


def run_training(run: TrainingRun) -> TrainingRecord:
    """Train a model, from the pairs to a model directory; return the training record that is stored
    there.

    Raises:
        ParagramError: A setting, the data, the output, the device or the initial model is refused,
            or there is nothing to resume, or an earlier run can be resumed but `resume` is not set.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.

    Examples:
        >>> from pathlib import Path
        >>> from st_paragram import TrainingRun, run_training
        >>> run = TrainingRun("es", Path("p-sp-new"), ["data/en-es.h5"], overrides={"dim": 16,
        ...     "epochs": 1})
        >>> before, after = run_training(run).scores  # of the development pairs
    """
    with run.started():
        return _train(run)


def check_device(name: str) -> None:
    """Refuse a device that torch cannot use."""
    import torch

    with refused(SettingsError, f"device {name}", "not available", "try cpu", AssertionError):
        torch.empty(0, device=None if name == "auto" else name)


def _train(run: TrainingRun) -> TrainingRecord:
    from transformers import set_seed

    from st_paragram.learning.models.card import AFTER
    from st_paragram.runs.development import Development

    settings = run.settings
    check_device(settings.device)
    store, pairs, translations = training_data(run)
    left_out = f" (left out: {in_words(store.dropped)})" if any(store.dropped.values()) else ""
    logger.info(
        f"training on {run.source.description}: {len(store):,} pairs{left_out},"
        f" {run.settings.extent}"
    )
    warn_of_few_pairs(run, store)
    set_seed(settings.seed)
    model = run.kind.training.new_model(store, settings)
    development = Development(model, pairs, translations)
    development.measure("before training")

    trainer = run.kind.training.trainer(
        model,
        store,
        settings,
        folder=run.checkpoints,
        evaluator=development.evaluator,
        data=run.more,
    )
    trainer.settings = asdict(settings)
    trainer.train(resume_from_checkpoint=run.resume)
    development.measure(AFTER)

    discarded = development.loss_of_translations if settings.init else ""
    if not discarded:
        return run.save(trainer, development)
    set_seed(settings.seed)
    initial = run.kind.training.new_model(store, settings)
    record = _save(run, initial, trainer, development, discarded)
    kept = ", ".join(map(str, complete_checkpoints(run.checkpoints))) or "none"
    logger.warning(
        f"{discarded}: the training was discarded, and {run.output} has the weights before"
        f" training; checkpoints kept: {kept}"
    )
    return record


def development_data(run: TrainingRun) -> tuple[GradedPairs, Translations | None]:
    """Return the graded pairs and the translations to score during training."""
    from st_paragram.runs import development

    pairs = development.development_pairs(run.development, run.language, run.force_test_set)
    if not run.translations:
        return pairs, None
    translations = development.development_translations(
        run.translations, run.language, run.force_test_set
    )
    return pairs, translations


def training_data(run: TrainingRun) -> tuple[PairStore, GradedPairs, Translations | None]:
    """Return the pairs to train on, and the development data."""
    from st_paragram.runs.development import hold_out

    pairs, translations = development_data(run)
    store = run.store()
    store.check()
    teacher = getattr(run.settings, "teacher", "")  # has vectors for all pairs of the store
    if run.kind.holds_out and not (translations or run.source.built_in or teacher):
        store, translations = hold_out(store)
    return store, pairs, translations


def warn_of_few_pairs(run: TrainingRun, store: PairStore) -> None:
    """Warn if the pairs of the user are too few for a usable model."""
    if len(store) < _FEW and not run.source.built_in:
        logger.warning(_TOO_FEW.format(len(store)))


def _save(
    run: TrainingRun,
    model: SentenceTransformer,
    trainer: StoreTrainer,
    development: Development,
    discarded: str = "",
) -> TrainingRecord:
    """Save a model with its card and the record of the run."""
    import torch

    from st_paragram.core.model_directory.card import render
    from st_paragram.learning.models import load_save
    from st_paragram.learning.models.card import from_record

    store = trainer.store
    scores = development.scores
    accuracies = development.translations_found
    task_scores = trainer.task_scores
    if discarded:  # the scores are those of the weights that are saved
        scores = scores[:1]
        accuracies = accuracies[:1]
        task_scores = task_scores[: len(task_scores) // 2]
    record = TrainingRecord(
        name=run.output.name,
        languages=store.languages,
        data=run.description or run.source.description,
        pairs=len(store),
        preparation=store.settings,
        segmentation=store.tokenizer().options.get("segmentation", "none"),
        machine=f"{platform.machine()}, {counted(torch.get_num_threads(), 'thread')}",
        settings={"family": run.family, **asdict(run.settings)},
        seconds=trainer.rate.wall_seconds,
        pairs_per_second=trainer.rate.pairs_per_second,
        scores=scores,
        translations=accuracies,
        history=tuple(trainer.state.log_history) if trainer.keeps_history else (),
        tasks=trainer.task_sizes,
        task_scores=task_scores,
        discarded=discarded,
    )
    card = from_record(record, facts_of(record), model.get_embedding_dimension())
    load_save.save(model, run.output, render(card), run.overwrite, training=record)
    return record
