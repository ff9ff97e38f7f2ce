"""A whole training run: its description, early checks, and the steps from pairs to a model
directory.

Nothing here needs torch, which takes seconds to import, before training starts.
"""

from __future__ import annotations

import importlib
import logging
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.families import family_named
from st_paragram.core.files import folder_for_file
from st_paragram.core.formatting import counted, in_words
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    CONFIG_FILE,
    read_configuration,
)
from st_paragram.core.model_directory.find import find
from st_paragram.core.model_directory.record import (
    Correlation,
    Score,
    TrainingRecord,
    TranslationScore,
    read_training_record,
)
from st_paragram.core.outputs import check_output_folder, output_lock
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError, refused
from st_paragram.learning.family import Family
from st_paragram.learning.training.checkpoints import (
    check_folder,
    complete_checkpoints,
    create_folder,
    newest_checkpoint,
    remove_checkpoints,
)
from st_paragram.runs.training_data import TrainingData, choose_data

if TYPE_CHECKING:
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
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
        language: The language other than English; "en" for English paraphrases.
        output: Output model directory.
        data: A pair store, texts, or "built-in"; see `choose_data`.
        description: Origin of the pairs for the card, in one line; None: the names of the files.
        config: Name of a configuration, or a YAML file; None: `default_config`, or the one for the
            built-in bitext.
        default_config: Configuration used by default; None: the family's.
        family: Name of the model family, as in `core.families`.
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

    Example:
        >>> from pathlib import Path
        >>> from st_paragram import TrainingRun
        >>> TrainingRun("es", Path("p-sp-new"), ["built-in"], config="small").settings.dim
        300
    """

    language: str
    output: Path
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
        default = self.default_config or self.kind.default_config
        return str(self.config or (self.kind.built_in_config if self.source.built_in else default))

    @cached_property
    def settings(self) -> Any:
        """The training settings, with configuration and overrides; a model to continue from sets
        the dimension.
        """
        settings = self.kind.read_settings(self.chosen_config, self.overrides)
        start = self._start(settings)
        if start and "dim" not in self.overrides and self.chosen_config in self.kind.configs:
            settings = self.kind.read_settings(
                self.chosen_config, {**self.overrides, "dim": start.dimension}
            )
        return settings

    @cached_property
    def vocabulary(self) -> SentencePieceTokenizer | None:
        """The vocabulary of the model to continue from, if it knows the language and no vocabulary
        size is given.
        """
        start = (
            None if self.source.store or self.vocab_size is not None else self._start(self.settings)
        )
        record = read_training_record(find(self.settings.init)) if start else None
        known = record is not None and self.language in record.languages[1].split("-")
        return cast("SentencePieceTokenizer", start.tokenizer) if start and known else None

    def _start(self, settings: Any) -> Encoder | None:
        """Return the model of sentencepiece embeddings from which P-SP continues."""
        if self.family != "psp" or not settings.init or settings.tokens != "sentencepiece":
            return None
        if read_configuration(find(settings.init)).architecture != AVERAGING:
            return None
        encoder = Encoder(settings.init)
        return encoder if encoder.tokenizer.kind == "sentencepiece" else None

    @cached_property
    def preparation(self) -> PrepareSettings:
        """The settings for text preparation."""
        from st_paragram.tools.preparation.settings import PrepareSettings

        about = {
            "tokens": self.settings.tokens,
            "vocab_size": self.vocab_size,
            "drop_invalid": self.drop_invalid,
        }
        if self.vocabulary:
            about |= self.vocabulary.options
        return PrepareSettings(("en", self.language), **about)

    def store(self) -> PairStore:
        """Return the pairs, after preparation if they are texts."""
        return PairStore(
            self.source.store
            or self.source.prepared(self.preparation, self.workers, self.vocabulary)
        )

    def check(self) -> None:
        """Check everything that can be checked without torch and before text is prepared."""
        if (count := os.environ.get("WORLD_SIZE", "1")) not in ("", "1"):
            raise SettingsError(
                f"{count} processes, but training uses only one; start without torchrun"
            )
        self.check_free()
        for path in filter(None, (self.development, self.translations)):
            if wrong := folder_for_file(path):
                raise TextError(f"{wrong}; name a file")
            if not path.exists():
                raise TextError(f"{path}: no such file; check the path")
        self.kind.check(self)
        if self.checks and self.source.texts:
            from st_paragram.tools.suspicions import warn_of_suspicions

            warn_of_suspicions(self.source.texts)
        if self.settings.init:
            find(self.settings.init)
        if not self.source.store or self.vocab_size is not None:
            _ = self.preparation
        self.check_checkpoints()

    def check_free(self) -> None:
        """Refuse an existing output that must not or cannot be replaced."""
        kind = "model directory of st_paragram"
        check_output_folder(self.output, self.overwrite, CONFIG_FILE, kind, ModelDirectoryError)

    def check_checkpoints(self) -> None:
        """Refuse to resume without a checkpoint, and to start where checkpoints or other files
        already are.
        """
        if self.resume:
            newest_checkpoint(self.checkpoints)
        else:
            check_folder(self.checkpoints)

    def shown(self) -> str:
        """Format the plan of the run: inputs, outputs and settings."""
        about = {"teacher": "teacher vectors to learn from", "init": "model to start from"}
        rows = [("reads", str(self.source))]
        rows += [
            ("", f"{path}: development data")
            for path in (self.development, self.translations)
            if path
        ]
        rows += [
            ("", f"{path}: {why}")
            for name, why in about.items()
            if (path := getattr(self.settings, name, ""))
        ]
        rows += [("makes", f"{self.output}: the model directory")]
        rows += [("", f"{self.checkpoints}: checkpoints, removed when the model is saved")]
        rows += [("with", f"configuration {self.chosen_config}, {self.settings.extent}")]
        if self.overrides:
            rows += [
                ("", ", ".join(f"{name} {value}" for name, value in sorted(self.overrides.items())))
            ]
        head = f"train a model of the family {self.kind.name} ({self.language})"
        return "\n".join([head, *(f"{name:7}{line}" for name, line in rows)])


def run_training(run: TrainingRun) -> TrainingRecord:
    """Train a model, from the pairs to a model directory; return the training record that is stored
    there.

    Raises:
        ParagramError: A setting, the data, the output, the device or the initial model is refused,
            or there is nothing to resume, or an earlier run can be resumed but `resume` is not set.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.

    Example:
        >>> from pathlib import Path
        >>> from st_paragram import TrainingRun, run_training
        >>> run = TrainingRun("es", Path("p-sp-new"), ["data/en-es.h5"], overrides={"dim": 16,
        ...     "epochs": 1})
        >>> before, after = run_training(run).scores  # of the development pairs
    """
    run.check()
    with output_lock(run.output, run.check_free):
        run.check_checkpoints()  # under the lock, so that they do not belong to an active run
        try:
            return _train(run)
        except KeyboardInterrupt:
            if complete_checkpoints(run.checkpoints):
                where = f"checkpoint saved in {run.checkpoints}"
                logger.warning(f"{where}; to continue, repeat the command with --resume")
            raise


def _train(run: TrainingRun) -> TrainingRecord:
    import torch
    from transformers import set_seed

    from st_paragram.learning.models.sentence_transformers_encoder import batch_size
    from st_paragram.runs import development

    settings = run.settings
    with refused(
        SettingsError, f"device {settings.device}", "not available", "try cpu", AssertionError
    ):
        torch.empty(0, device=None if settings.device == "auto" else settings.device)
    pairs = development.development_pairs(run.development, run.language, run.force_test_set)
    translations = None
    if run.translations:
        translations = development.development_translations(
            run.translations, run.language, run.force_test_set
        )
    store = run.store()
    store.check()
    if run.family == "psp" and not (translations or run.source.built_in or settings.teacher):
        store, translations = development.hold_out(store)
    left_out = f" (left out: {in_words(store.dropped)})" if any(store.dropped.values()) else ""
    logger.info(
        f"training on {run.source.description}: {len(store):,} pairs{left_out}, {settings.extent}"
    )
    if len(store) < _FEW and not run.source.built_in:
        logger.warning(_TOO_FEW.format(len(store)))

    set_seed(settings.seed)
    training = importlib.import_module(run.kind.module)
    model = training.new_model(store, settings)
    pairs = development.with_known_tokens(pairs, model)
    if translations:
        translations = development.with_known_tokens(translations, model)
    evaluator = development.development_evaluator(pairs, translations, batch_size(model))
    scores, accuracies, hits = [], [], []

    def measure(when: str) -> None:
        values: Any = evaluator(model)
        pearson, spearman = (
            float(values[f"{pairs.name}_{kind}_cosine"]) for kind in ("pearson", "spearman")
        )
        scores.append(Score(pairs.name, len(pairs), when, Correlation(pearson, spearman)))
        if translations:
            accuracy = float(values[f"{translations.name}_mean_accuracy"])
            accuracies.append(
                TranslationScore(translations.name, len(translations), when, accuracy)
            )
            hits.append(development.hits_of(evaluator))

    measure("before training")
    create_folder(run.checkpoints)
    trainer = training.trainer(model, store, settings, run.checkpoints, evaluator, run)
    trainer.settings = asdict(settings)
    trainer.train(resume_from_checkpoint=run.resume)

    from st_paragram.learning.models import load_save
    from st_paragram.learning.models.card import AFTER, from_record, render

    measure(AFTER)
    trained = trainer.trained
    discarded = ""
    if settings.init and translations and development.is_worse(*hits):
        before, after = (f"{100 * score.accuracy:.1f} %" for score in accuracies)
        discarded = f"translations found fell from {before} to {after}"
        set_seed(settings.seed)
        trained = training.new_model(store, settings)
        scores, accuracies = scores[:1], accuracies[:1]  # those of the weights that are saved
    record = TrainingRecord(
        name=run.output.name,
        languages=store.languages,
        data=run.description or run.source.description,
        pairs=len(store),
        preparation=store.settings,
        segmentation=store.tokenizer().options.get("segmentation", "none"),
        machine=f"{platform.machine()}, {counted(torch.get_num_threads(), 'thread')}",
        settings={"family": run.family, **asdict(settings)},
        seconds=trainer.rate.wall_seconds,
        pairs_per_second=trainer.rate.pairs_per_second,
        scores=scores,
        translations=accuracies,
        history=tuple(trainer.state.log_history) if trainer.keeps_history else (),
        tasks=trainer.task_sizes,
        discarded=discarded,
    )
    card = render(from_record(record, trained.get_embedding_dimension()))
    load_save.save(trained, run.output, card, run.overwrite, training=record)
    if discarded:
        kept = ", ".join(map(str, complete_checkpoints(run.checkpoints))) or "none"
        outcome = f"the training was discarded, and {run.output} has the weights before training"
        logger.warning(f"{discarded}: {outcome}; checkpoints kept: {kept}")
    else:
        remove_checkpoints(run.checkpoints)
    return record
