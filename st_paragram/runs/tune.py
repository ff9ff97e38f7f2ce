"""The paper's grid search for dropout and maximum M, which keeps the best model."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from itertools import product

from st_paragram.core.files import read_json, write_json
from st_paragram.core.folders import is_own_folder, make_own_folder, remove_own_folder
from st_paragram.core.model_directory.record import TrainingRecord, read_training_record
from st_paragram.core.outputs import output_lock
from st_paragram.errors import SettingsError
from st_paragram.learning.training.checkpoints import complete_checkpoints
from st_paragram.runs.run import TrainingRun, run_training

logger = logging.getLogger(__name__)

#: The grid of EMNLP 2022 for bitext.
TUNED_DROPOUT = (0.0, 0.1, 0.3)
TUNED_MEGABATCH_SIZE = (60, 100, 140)


def tune(run: TrainingRun) -> TrainingRecord:
    """Train the paper's grid, dropout x M, and save the model with the best Pearson correlation on
    development pairs.

    Each point of the grid is a separate training run in the folder `OUTPUT.grid`, which is removed
    at the end. Resuming keeps finished points and continues the interrupted point.
    """
    checked = replace(run, resume=False)
    checked.check()
    grid = run.output.with_name(f"{run.output.name}.grid")
    begun_before = is_own_folder(grid)
    if begun_before and not run.resume:
        raise SettingsError(
            f"{grid}: left by an earlier search; resume it with --resume, or remove it"
        )
    if run.resume and not begun_before:
        raise SettingsError(f"{grid}: not a search to resume; tune without --resume")
    with output_lock(run.output):
        make_own_folder(grid)  # refuses a folder that is not ours
        store, begun = checked.store(), grid / "data.json"
        if not begun.is_file():
            write_json(begun, store.digest)
        if read_json(begun) != store.digest:
            raise SettingsError(
                f"{grid}: started with other data than {store.path}; resume with the same or"
                " remove it"
            )
        points = []
        for dropout, size in product(TUNED_DROPOUT, TUNED_MEGABATCH_SIZE):
            logger.info(f"tuning: dropout {dropout}, M {size}")
            overrides = {**run.overrides, "dropout": dropout, "megabatch_size": size}
            point = replace(
                run, output=grid / f"dropout-{dropout}-m-{size}", overrides=overrides, checks=False
            )
            points.append((_record(point), point.output))
        points.sort(key=lambda found: found[0].scores[-1].correlation.pearson, reverse=True)
        for record, _ in points:
            logger.info(
                f"{record.name}: {record.scores[-1].data}"
                f" {100 * record.scores[-1].correlation.pearson:.1f}"
            )

        from st_paragram.learning.models import load_save
        from st_paragram.learning.models.card import from_record, render

        best = replace(points[0][0], name=run.output.name)
        model = load_save.load(points[0][1], device="cpu")
        load_save.save(model, run.output, render(from_record(best)), run.overwrite, training=best)
        remove_own_folder(grid)
    return best


def _record(point: TrainingRun) -> TrainingRecord:
    """Return the record of a point of the grid, after training it unless it is finished."""
    if (found := read_training_record(point.output)) is None:
        return run_training(replace(point, resume=bool(complete_checkpoints(point.checkpoints))))
    if found.settings != {"family": point.family, **asdict(point.settings)}:
        raise SettingsError(
            f"{point.output}: other settings; resume with the same, or remove {point.output.parent}"
        )
    return found
