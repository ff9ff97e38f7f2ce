"""A whole training run: planned once, then done: find the pairs, train or tune, save a model directory.

What can be refused early is refused by the plan, before torch is imported, which takes seconds, and before text is
prepared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.directory import CONFIG_FILE
from st_paragram.core.encoding.find import find
from st_paragram.core.families import family_named
from st_paragram.core.files import check_output_folder, folder_for_file, output_lock
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError
from st_paragram.learning.training.processes import is_main_process
from st_paragram.learning.training.progress import refuse_left
from st_paragram.learning.training.training_data import (
    BuiltInText,
    TextFiles,
    TrainingData,
    TrainingSource,
    choose_data,
    preparation,
)
from st_paragram.tools.checks.suspicions import warn_of_suspicions

if TYPE_CHECKING:
    from st_paragram.learning.training.family import Family, RunSettings
    from st_paragram.learning.training.train import TrainingReport, Watched
    from st_paragram.tools.preparation.settings import PrepareSettings


@dataclass(frozen=True)
class TrainingRun:
    """What a training run is asked to do.

    Attributes:
        language: The language other than English; "en" for English paraphrases.
        output: The model directory to make.
        data: A pair store, or texts, or "built-in"; see `choose_data`.
        description: One line that says where the pairs come from, for the card; None: the names of the files.
        config: The name of a configuration or a YAML file, see `config_path`. None: `default_config`, but the family's
            configuration for the built-in bitext where that is trained on.
        default_config: What serves if no configuration is named; None: the family's.
        family: The family of the model, as `core.families` names it.
        more: What only this family takes, by name: `MuseData` of a dual encoder.
        overrides: Settings that are stronger than those of the configuration.
        vocab_size: Pieces of the vocabulary, where texts are prepared; None: as `PrepareSettings` chooses.
        drop_invalid: Drop rows of texts that cannot be read in place of refusing the text.
        workers: Processes that prepare texts.
        checks: Warn of what in texts looks like a mistake: a header, equal sides, wrong languages, shifted rows.
        development: A file of graded pairs to watch the run with; None: the built-in ones.
        translations: A file of held-out translations to watch the run with, too.
        force_test_set: Allow a known test set for either.
        tune: Train the paper's grid and keep the best, where the family has one.
        resume: Continue from the last checkpoint.
        overwrite: Replace an existing model directory.
        columns: The columns of texts that are tables, see `choose_data`.

    Example:
        >>> from pathlib import Path
        >>> from st_paragram import TrainingRun
        >>> plan = TrainingRun("es", Path("p-sp-new"), ["built-in"], config="small").plan()
    """

    language: str
    output: Path
    data: Sequence[str] = ()
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
    tune: bool = False
    resume: bool = False
    overwrite: bool = False
    columns: Sequence[Sequence[str]] = ()

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints, next to the output; it goes when the model is saved."""
        return self.output.with_name(f"{self.output.name}.checkpoints")

    def check_free(self) -> None:
        """Refuse an output that exists, or cannot be made.

        Raises:
            ModelDirectoryError: It does, or cannot.
        """
        kind = "model directory of st_paragram"
        check_output_folder(self.output, self.overwrite, CONFIG_FILE, kind, ModelDirectoryError)

    def check_checkpoints(self) -> None:
        """Refuse to resume where nothing was left, and to begin where something was.

        Raises:
            SettingsError: There is no checkpoint, or there is one and the run is not to be resumed.
        """
        if not self.resume:
            refuse_left(self.checkpoints)
        elif not self.tune and not self.checkpoints.is_dir():
            raise SettingsError(f"{self.checkpoints}: no checkpoint to resume from; train without --resume")

    def plan(self) -> TrainingPlan:
        """Resolve everything that a run needs to know, and refuse what can be refused without torch.

        Raises:
            SettingsError: A setting or the configuration is refused, or there is nothing to train on.
            ModelDirectoryError: The output exists, or cannot be made.
            TextError: A file is missing.
            StoreError: The pair store is missing or refused.
        """
        family: Family = family_named(self.family)
        self._check(family)
        source = choose_data(self.language, self.data, self.drop_invalid, self.columns)
        if self.checks and isinstance(source, TextFiles) and is_main_process():
            warn_of_suspicions(source.sources)
        default = self.default_config or family.default_config
        config = self.config or (family.built_in_config if isinstance(source, BuiltInText) else default)
        settings = family.read_settings(config, self.overrides)
        family.reads(settings)
        prepare = preparation(self.language, self.vocab_size, settings.tokens, self.drop_invalid)
        return TrainingPlan(self, family, str(config), settings, source, prepare)

    def _check(self, family: Family) -> None:
        self.check_free()
        for path in (self.development, self.translations):
            if path is not None and (wrong := folder_for_file(path)):
                raise TextError(f"{wrong}; name a file")
            if path is not None and not path.exists():
                raise TextError(f"{path}: no such file; check the path")
        family.check(self)


@dataclass(frozen=True)
class TrainingPlan:
    """A training run with all that it names looked up: what `execute` does.

    Attributes:
        run: What was asked for.
        family: Of the model.
        config: The configuration: its name, or its file.
        settings: Of the training, with configuration and overrides in them.
        source: What is trained on.
        preparation: How texts are prepared.
    """

    run: TrainingRun
    family: Family
    config: str
    settings: RunSettings
    source: TrainingSource
    preparation: PrepareSettings

    def shown(self) -> str:
        """The plan in words, as lines: what is read, what is made, and by which settings.

        Raises:
            SettingsError: As of `TrainingRun.check_checkpoints`.
        """
        self.run.check_checkpoints()
        run, settings = self.run, self.settings
        watched = [f"{path}: to watch the run with" for path in (run.development, run.translations) if path]
        reads = [str(self.source), *watched, *self.family.reads(settings)]
        if settings.init:
            reads.append(f"{settings.init}: the rows that training begins with")
        checkpoints = f"{run.checkpoints}: checkpoints, removed when the model is saved"
        changed = ", ".join(f"{name} {value}" for name, value in sorted(run.overrides.items()))
        how = [f"configuration {self.config}, {settings.extent}", *([changed] if changed else [])]
        parts = (("reads", reads), ("makes", [f"{run.output}: the model directory", checkpoints]), ("with", how))
        lines = [f"{'' if number else name:7}{line}" for name, part in parts for number, line in enumerate(part)]
        return "\n".join([f"train a model of the family {self.family.name} ({run.language})", *lines])


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


OnStart = Callable[[TrainingData, "RunSettings"], None]


def run_training(run: TrainingRun, on_start: OnStart | None = None) -> RunReport:
    """Plan a training run and do it, from the pairs to a model directory.

    Args:
        run: What to do.
        on_start: Called when the pairs are ready and training is about to start.

    Raises:
        ParagramError: As in `TrainingRun.plan` and `execute`.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.

    Example:
        >>> from pathlib import Path
        >>> from st_paragram import TrainingRun, run_training
        >>> run = TrainingRun("es", Path("p-sp-new"), ["data/en-es.h5"], overrides={"dim": 16, "epochs": 1})
        >>> report = run_training(run)
    """
    return execute(run.plan(), on_start)


def execute(plan: TrainingPlan, on_start: OnStart | None = None) -> RunReport:
    """Do what was planned.

    Args:
        plan: What to do.
        on_start: As in `run_training`.

    Raises:
        ParagramError: The development pairs, the text, the device or the model to begin with are refused, or there is
            nothing to resume, or an earlier run can be resumed and is not to be. Or another run is writing the output,
            or it cannot be written.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    if not is_main_process():
        plan.run.check_checkpoints()
        return _execute(plan, None)
    with output_lock(plan.run.output, plan.run.check_free):
        plan.run.check_checkpoints()  # with the lock, so that they are not those of a run that is at work
        return _execute(plan, on_start)


def _execute(plan: TrainingPlan, on_start: OnStart | None) -> RunReport:
    from st_paragram.learning.training.devices import check_device
    from st_paragram.learning.training.train import save

    run, settings = plan.run, plan.settings
    check_device(settings.device)
    if settings.init:
        find(settings.init)
    watched = _watched(run)
    data = plan.source.open(plan.preparation, run.workers)
    more = plan.family.more_data(plan, data)
    if on_start:
        on_start(data, settings)
    best, points = plan.family.fit(plan, data, watched, more)
    if is_main_process():
        save(best, data.store, watched.development, run.output, run.description or data.description, run.overwrite)
        shutil.rmtree(run.checkpoints, ignore_errors=True)
    return RunReport(run.output, watched.development.name, best.report, data.built_in, tuple(points))


def _watched(run: TrainingRun) -> Watched:
    """What the run is watched with."""
    from st_paragram.learning.training.development import development_pairs, development_translations
    from st_paragram.learning.training.train import Watched

    pairs = development_pairs(run.development, run.language, run.force_test_set)
    if run.translations is None:
        return Watched(pairs)
    return Watched(pairs, development_translations(run.translations, run.language, run.force_test_set))
