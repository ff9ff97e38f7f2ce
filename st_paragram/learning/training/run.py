"""A whole training run: find the pairs, train or tune, save a model directory.

What can be refused early is refused before torch is imported, which takes seconds, and before text is prepared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.configuration import CONFIG_FILE
from st_paragram.core.encoding.find import find
from st_paragram.core.files import check_output_folder, output_lock
from st_paragram.core.settings import read
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.tasks.task_files import task_files
from st_paragram.learning.training.families import ENCODERS, AnySettings, Family
from st_paragram.learning.training.processes import is_main_process
from st_paragram.learning.training.progress import refuse_left
from st_paragram.learning.training.settings import TrainingSettings, config_path
from st_paragram.learning.training.training_data import (
    BUILT_IN,
    OtherTasks,
    TrainingData,
    choose_data,
    find_training_data,
    other_tasks,
    preparation,
)

if TYPE_CHECKING:
    from st_paragram.learning.training.train import TrainingReport, TrainingResult
    from st_paragram.tools.evaluation.graded_pairs import GradedPairs
    from st_paragram.tools.evaluation.translations import Translations


@dataclass(frozen=True)
class TrainingRun:
    """What a training run is asked to do.

    Attributes:
        language: The language beside English; "en" for English paraphrases.
        output: The model directory to make.
        data: A pair store, or texts, or "built-in"; see `find_training_data`.
        description: One line that says where the pairs come from, for the card; None: the names of the files.
        config: The name of a configuration or a YAML file, see `config_path`. None: `default_config`, but "small" for
            the built-in bitext.
        default_config: What serves if no configuration is named.
        family: What kind of model is trained.
        tasks: Folders of other tasks than translation, for a dual encoder, by their names, see `data.tasks`.
        languages: The languages beside English that a dual encoder is trained on; all of the data if none is named.
        overrides: Settings that are stronger than those of the configuration.
        vocab_size: Pieces of the vocabulary, where texts are prepared; None: as `PrepareSettings` chooses.
        drop_invalid: Drop rows of texts that cannot be read in place of refusing the text.
        workers: Processes that prepare texts.
        development: A file of graded pairs to watch the run with; None: the built-in ones.
        translations: A file of held-out translations to watch the run with, too.
        force_test_set: Allow a known test set for either.
        tune: Train the paper's grid and keep the best, see `tune`.
        resume: Continue from the last checkpoint.
        overwrite: Replace an existing model directory.
    """

    language: str
    output: Path
    data: Sequence[str] = ()
    description: str | None = None
    config: str | Path | None = None
    default_config: str = "short"
    family: Family = ENCODERS
    tasks: Mapping[str, Path] = field(default_factory=dict)
    languages: Sequence[str] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    vocab_size: int | None = None
    drop_invalid: bool = False
    workers: int = 1
    development: Path | None = None
    translations: Path | None = None
    force_test_set: bool = False
    tune: bool = False
    resume: bool = False
    overwrite: bool = False

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints, beside the output; it goes when the model is saved."""
        return self.output.with_name(f"{self.output.name}.checkpoints")

    def check(self) -> tuple[AnySettings, list[str]]:
        """Refuse what can be refused without torch.

        Returns:
            The settings, and the data that was chosen.

        Raises:
            SettingsError: A setting or the configuration is refused, there is nothing to train on or to resume, or an
            earlier run can be resumed and is not to be.
            ModelDirectoryError: The output exists, or cannot be made.
            TextError: A file is missing.
            StoreError: The pair store is missing or refused.
        """
        family = self.family
        config = None if self.config is None else config_path(self.config, family.configs)
        read(family.settings, config, self.overrides)
        self.check_free()
        for path in (self.development, self.translations):
            if path is not None and not path.exists():
                raise TextError(f"{path}: no such file; check the path")
        for task, folder in self.tasks.items():
            task_files(folder, task)
        if self.resume and not self.tune and not self.checkpoints.is_dir():
            raise SettingsError(f"{self.checkpoints}: no checkpoint to resume from; train without --resume")
        if not self.resume:
            refuse_left(self.checkpoints)
        preparation(self.language, self.vocab_size)
        data = choose_data(self.language, self.data, self.drop_invalid)
        default = family.built_in_config if data == [BUILT_IN] else self.default_config
        settings = read(family.settings, config or config_path(default, family.configs), self.overrides)
        return settings, data

    def check_free(self) -> None:
        """Refuse an output that exists, or cannot be made.

        Raises:
            ModelDirectoryError: It does, or cannot.
        """
        kind = "model directory of st_paragram"
        check_output_folder(self.output, self.overwrite, CONFIG_FILE, kind, ModelDirectoryError)


@dataclass(frozen=True)
class RunReport:
    """What came of a training run.

    Attributes:
        output: The model directory.
        development: The name of the pairs that the run was watched with.
        best: The report on the model that was saved.
        built_in: It was trained on the built-in bitext.
        points: The reports on all points of a grid, best first; none if nothing was tuned.
    """

    output: Path
    development: str
    best: TrainingReport
    built_in: bool
    points: tuple[TrainingReport, ...] = ()


def run_training(run: TrainingRun, on_start: Callable[[TrainingData, AnySettings], None] | None = None) -> RunReport:
    """Do a training run, from the pairs to a model directory.

    Args:
        run: What to do.
        on_start: Called when the pairs are ready and training is about to start.

    Raises:
        ParagramError: As in `TrainingRun.check`, at once; or the development pairs, the text, the device or the model
            to begin with are refused, or there is nothing to resume. Or another run is writing the output, or it cannot
            be written.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    settings, chosen = run.check()
    if not is_main_process():
        return _run(run, settings, chosen, None)
    with output_lock(run.output, run.check_free, ModelDirectoryError):
        return _run(run, settings, chosen, on_start)


def _run(
    run: TrainingRun,
    settings: AnySettings,
    chosen: list[str],
    on_start: Callable[[TrainingData, AnySettings], None] | None,
) -> RunReport:
    from st_paragram.learning.training.devices import check_device
    from st_paragram.learning.training.train import save

    check_device(settings.device)
    if settings.init:
        find(settings.init)
    development, translations = _watched(run)
    how = preparation(run.language, run.vocab_size, settings.tokens, run.drop_invalid)
    data = find_training_data(run.language, chosen, how, run.workers)
    tasks = None
    if isinstance(settings, DualEncoderSettings):
        tasks = other_tasks(run.tasks, data.store, settings, run.languages)
    if on_start:
        on_start(data, settings)
    best, points = _trained(run, settings, data, development, translations, tasks)
    if is_main_process():
        save(best, data.store, development, run.output, run.description or data.description, run.overwrite)
        shutil.rmtree(run.checkpoints, ignore_errors=True)
    return RunReport(run.output, development.name, best.report, data.built_in, points)


def _watched(run: TrainingRun) -> tuple[GradedPairs, Translations | None]:
    """What the run is watched with."""
    from st_paragram.tools.evaluation.development import development_pairs, development_translations

    pairs = development_pairs(run.development, run.language, run.force_test_set)
    if run.translations is None:
        return pairs, None
    return pairs, development_translations(run.translations, run.language, run.force_test_set)


def _trained(
    run: TrainingRun,
    settings: AnySettings,
    data: TrainingData,
    development: GradedPairs,
    translations: Translations | None,
    tasks: OtherTasks | None,
) -> tuple[TrainingResult, tuple[TrainingReport, ...]]:
    """The model to save, and the reports on a grid."""
    from st_paragram.families.psp.tune import tune
    from st_paragram.learning.training.train import train

    watched = (development, run.checkpoints, run.resume, translations)
    if not (run.tune and isinstance(settings, TrainingSettings)):
        return train(data.store, settings, *watched, tasks=tasks), ()
    best, points = tune(data.store, settings, *watched)
    return best, tuple(points)
