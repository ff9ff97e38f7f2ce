"""The plan of a training run or a grid search: what it reads and makes, without doing it."""

from __future__ import annotations

from st_paragram.core.folders import scratch_folder
from st_paragram.core.formatting import counted
from st_paragram.core.languages import codes_of_sides
from st_paragram.core.model_directory.configuration import TRAINING_FILE
from st_paragram.learning.training.checkpoints import complete_checkpoints
from st_paragram.runs import tune
from st_paragram.runs.run import TrainingRun, check_device, development_data


def check_inputs(run: TrainingRun) -> None:
    """Refuse settings and data that the run refuses, as far as that needs no prepared text.

    torch is imported only for a pair store, development data or a device.
    """
    run.check_inputs()
    device = run.settings.device
    if device not in ("auto", "cpu"):
        check_device(device)
    if run.development or run.translations:
        development_data(run)
    if run.source.store:
        store = run.store()
        store.check()
        training = run.kind.training
        model = training.new_model(store, run.settings)  # refuses other tokens
        if not getattr(run.more, "tasks", None):  # rows of other tasks would have to be read
            with scratch_folder() as folder:
                training.trainer(
                    model, store, run.settings, folder=folder, evaluator=None, data=run.more
                )


def check_outputs(run: TrainingRun, is_tuned: bool = False) -> None:
    """Refuse outputs that the run, or its grid search, refuses."""
    if is_tuned:
        tune.check_outputs(run)
    else:
        run.check_free()
        run.check_checkpoints()


def plan(run: TrainingRun, is_tuned: bool = False) -> str:
    """Format the plan of the run, or of its grid search: inputs, outputs and settings."""
    inputs = [str(run.source)]
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
        options.append(_values())
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


def _values() -> str:
    """Describe the values of a search."""
    dropout = ", ".join(map(str, tune.TUNED_DROPOUT))
    sizes = ", ".join(map(str, tune.TUNED_MEGABATCH_SIZE))
    runs = len(tune.TUNED_DROPOUT) * len(tune.TUNED_MEGABATCH_SIZE)
    return f"{runs} runs: dropout {dropout} x megabatch_size {sizes}"
