"""The paper's search for the best dropout and largest M: a grid of training runs, the best of which stays."""

from __future__ import annotations

import logging
import shutil
from dataclasses import asdict, replace
from itertools import product

from st_paragram.core.encoding.record import TrainingRecord, read_training_record
from st_paragram.core.files import output_lock
from st_paragram.errors import SettingsError
from st_paragram.learning.training.checkpoints import complete_checkpoints
from st_paragram.learning.training.run import OnStart, TrainingReport, TrainingRun, run_training

logger = logging.getLogger(__name__)

#: The grid of EMNLP 2022 for bitext.
TUNED_DROPOUT = (0.0, 0.1, 0.3)
TUNED_MEGABATCH_SIZE = (60, 100, 140)


def tune(run: TrainingRun, on_start: OnStart | None = None) -> TrainingReport:
    """Train the paper's grid, dropout x M, and save the model with the best Pearson correlation on development pairs.

    Each point of the grid is a separate training run in the folder `OUTPUT.grid`, which goes at the end. To resume
    keeps the finished points and continues the interrupted one.
    """
    replace(run, resume=False).check()
    grid = run.output.with_name(f"{run.output.name}.grid")
    if grid.is_dir() != run.resume:
        advice = "resume it with --resume, or remove it" if grid.is_dir() else "tune without --resume"
        raise SettingsError(f"{grid}: {'left by an earlier' if grid.is_dir() else 'no'} search; {advice}")
    records: list[tuple[TrainingRecord, TrainingRun]] = []
    with output_lock(run.output):
        for dropout, size in product(TUNED_DROPOUT, TUNED_MEGABATCH_SIZE):
            overrides = {**run.overrides, "dropout": dropout, "megabatch_size": size}
            point = replace(run, output=grid / f"dropout-{dropout}-m-{size}", overrides=overrides, checks=False)
            records.append((_record(point, on_start), point))
        records.sort(key=lambda found: found[0].scores[-1].correlation.pearson, reverse=True)
        for record, point in records:
            logger.info(
                f"{point.output.name}: {record.scores[-1].data} {100 * record.scores[-1].correlation.pearson:.1f}"
            )
        best, point = records[0]
        _save(replace(best, name=run.output.name), point, run)
        shutil.rmtree(grid)
    return TrainingReport(run.output, best, run.source.built_in)


def _record(point: TrainingRun, on_start: OnStart | None) -> TrainingRecord:
    """The record of a point of the grid, which is trained unless it is finished."""
    logger.info(f"tuning: dropout {point.settings.dropout}, M {point.settings.megabatch_size}")
    if (found := read_training_record(point.output)) is not None:
        if found.settings != {"family": point.family, **asdict(point.settings)}:
            raise SettingsError(
                f"{point.output}: of other settings; resume with the same, or remove {point.output.parent}"
            )
        return found
    return run_training(replace(point, resume=bool(complete_checkpoints(point.checkpoints))), on_start).record


def _save(record: TrainingRecord, point: TrainingRun, run: TrainingRun) -> None:
    from st_paragram.learning.models import directory
    from st_paragram.learning.models.card import from_record, render

    model = directory.load(point.output, device="cpu")
    directory.save(model, run.output, render(from_record(record)), run.overwrite, training=record)
