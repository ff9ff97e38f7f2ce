"""The plan of a training run or a grid search: what it reads and makes, without doing it."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from itertools import islice

from st_paragram.core.folders import scratch_folder
from st_paragram.core.formatting import counted
from st_paragram.core.languages import codes_of_sides
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    TRAINING_FILE,
    read_configuration,
)
from st_paragram.core.model_directory.find import find
from st_paragram.core.text.parallel import read_pairs
from st_paragram.errors import SettingsError
from st_paragram.learning.training.checkpoints import complete_checkpoints, newest_checkpoint
from st_paragram.runs import tune
from st_paragram.runs.run import (
    TrainingRun,
    check_device,
    development_data,
    training_data,
    warn_of_few_pairs,
)

_ROWS = 1_000_000  # rows of a text to check, about a second


def check_inputs(run: TrainingRun) -> None:
    """Refuse settings and data that the run refuses, as far as that needs no prepared text.

    torch is imported only for a pair store, development data, a device or a network to start from.
    """
    for package in ("torch", "sentence_transformers"):
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    run.check_inputs()
    device = run.settings.device
    if device not in ("auto", "cpu"):
        check_device(device)
    if run.source.store:
        _check_store(run)
        return
    if run.development or run.translations:
        development_data(run)
    for text in run.source.texts:
        for _ in islice(read_pairs(text, drop_invalid=run.drop_invalid), _ROWS):
            pass
    _check_network(run.settings.init, run.settings.dim)


def _check_store(run: TrainingRun) -> None:
    """Refuse what the run refuses between reading its store and the first step."""
    from st_paragram.runs.development import Development

    training = run.kind.training
    store, pairs, translations = training_data(run)
    warn_of_few_pairs(run, store)
    model = training.new_model(store, run.settings)
    if getattr(run.more, "tasks", None):  # their rows would have to be read
        return
    evaluator = Development(model, pairs, translations).evaluator
    with scratch_folder() as folder:
        trainer = training.trainer(
            model, store, run.settings, folder=folder, evaluator=evaluator, data=run.more
        )
    if run.resume and complete_checkpoints(run.checkpoints):
        trainer.settings = asdict(run.settings)
        trainer.check_checkpoint(newest_checkpoint(run.checkpoints))


def _check_network(name: str, dim: int) -> None:
    """Refuse a model to start from with too few dimensions if it is not an averaging model, whose
    dimensions the run has checked.
    """
    if not name or read_configuration(find(name)).architecture == AVERAGING:
        return
    import st_paragram

    model_dim = st_paragram.load(name, device="cpu").get_embedding_dimension() or dim
    if dim > model_dim:
        raise SettingsError(
            f"dim is {dim}, but {name} has {model_dim} dimensions; choose at most {model_dim}"
        )


def check_outputs(run: TrainingRun, is_tuned: bool = False) -> None:
    """Refuse outputs that the run, or its grid search, refuses."""
    if is_tuned:
        tune.check_outputs(run)
        if run.resume and run.source.store:
            tune.check_same_data(tune.grid_folder(run), run.store())
    else:
        run.check_free()
        run.check_checkpoints()


def plan(run: TrainingRun, is_tuned: bool = False) -> str:
    """Format the plan of the run, or of its grid search: inputs, outputs and settings."""
    inputs = [str(run.source)]
    if run.source.texts:
        rows = f"checked: the first {_ROWS:,} rows of a text"
        inputs.append(f"{rows}, not how many pairs the filters leave")
    for task, folder in getattr(run.more, "tasks", {}).items():
        inputs.append(f"{folder}: texts of the task {task}, of which only first rows are checked")
    for path in (run.development, run.translations):
        if path:
            inputs.append(f"{path}: development data")
    teacher = getattr(run.settings, "teacher", "")
    if teacher:
        inputs.append(f"{teacher}: teacher vectors to learn from")
    if run.settings.init:
        inputs.append(f"{run.settings.init}: model to start from")
    options = [f"configuration {run.chosen_config}, {run.settings.extent}"]
    if run.overrides:
        given = sorted(run.overrides.items())
        options.append(", ".join(f"{name} {value}" for name, value in given))
    outputs = [_model(run)]
    if is_tuned:
        outputs.append(_grid(run))
        options.append(_values(run))
    else:
        outputs.append(_checkpoints(run))
    languages = ", ".join(codes_of_sides(run.languages))
    lines = [f"train a model of the family {run.family} ({languages})"]
    for title, entries in (("reads", inputs), ("makes", outputs), ("with", options)):
        for number, entry in enumerate(entries):
            lines.append(f"{'' if number else title:7}{entry}")
    return "\n".join(lines)


def _model(run: TrainingRun) -> str:
    line = f"{run.output}: the model directory"
    if not run.output.exists():
        return line
    return f"{line}, which exists; {'it is replaced' if run.overwrite else 'the run refuses it'}"


def _checkpoints(run: TrainingRun) -> str:
    line = f"{run.checkpoints}: checkpoints, removed when the model is saved"
    checkpoints = complete_checkpoints(run.checkpoints)
    if not checkpoints:
        return line
    name = checkpoints[-1].name
    if run.resume:
        return f"{line}; the run resumes from {name}"
    return f"{line}; {name} exists, so the run needs --resume"


def _grid(run: TrainingRun) -> str:
    """Describe the folder of a search, with the number of finished models."""
    points = tune.points(run)
    folder = tune.grid_folder(run)
    line = f"{folder}: {len(points)} models, removed when the best model is saved"
    if not folder.exists():
        return line
    finished = sum((model / TRAINING_FILE).is_file() for _, _, model in points)
    if run.resume:
        return f"{line}; the run resumes with {finished} of them finished"
    return f"{line}; it exists with {counted(finished, 'model')}, so the run needs --resume"


def _values(run: TrainingRun) -> str:
    """Describe the values of a search."""
    dropouts, sizes = tune.values(run)
    dropout = ", ".join(map(str, dropouts))
    size = ", ".join(map(str, sizes))
    return f"{len(dropouts) * len(sizes)} runs: dropout {dropout} x megabatch_size {size}"
