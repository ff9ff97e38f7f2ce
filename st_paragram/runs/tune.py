"""The paper's grid search for dropout and maximum M, which keeps the best model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

from st_paragram.core.files import read_json, write_json
from st_paragram.core.folders import (
    check_own_folder,
    is_own_folder,
    make_own_folder,
    remove_own_folder,
)
from st_paragram.core.model_directory.record import TrainingRecord, read_training_record
from st_paragram.core.outputs import output_lock
from st_paragram.core.pair_store import PairStore
from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError
from st_paragram.learning.training.checkpoints import (
    check_folder,
    check_settings,
    complete_checkpoints,
)
from st_paragram.runs.families import facts_of
from st_paragram.runs.run import TrainingRun, run_training

logger = logging.getLogger(__name__)

_DATA = "data.json"  # digest of the pairs of a search

#: The grid of EMNLP 2022 for bitext.
TUNED_DROPOUT = (0.0, 0.1, 0.3)
TUNED_MEGABATCH_SIZE = (60, 100, 140)


def tune(run: TrainingRun) -> TrainingRecord:
    """Train the paper's grid, dropout x M, and save the model with the best Pearson correlation on
    development pairs. If one of the two settings is given, only the other varies.

    Each point of the grid is a separate training run in the folder `OUTPUT.grid`, which is removed
    at the end. Resuming keeps finished points and continues the interrupted point.
    """
    check_outputs(run)
    run.check_inputs()
    grid = grid_folder(run)
    with output_lock(run.output):
        make_own_folder(grid)
        store = replace(run, resume=False).store()
        check_same_data(grid, store)
        write_json(grid / _DATA, store.digest)
        folders = {}
        records = []
        for dropout, size, folder in points(run):
            logger.info(f"tuning: dropout {dropout}, M {size}")
            record = _record(_point(run, dropout, size, folder))
            folders[record.name] = folder
            records.append(record)
        records.sort(key=_correlation, reverse=True)
        for record in records:
            logger.info(f"{record.name}: {record.scores[-1].data} {100 * _correlation(record):.1f}")
        best = replace(records[0], name=run.output.name)
        _save(best, folders[records[0].name], run)
        remove_own_folder(grid)
    return best


def grid_folder(run: TrainingRun) -> Path:
    """Return the folder of the models of a search."""
    return run.output.with_name(f"{run.output.name}.grid")


def values(run: TrainingRun) -> tuple[Sequence[float], Sequence[int]]:
    """Return the values of dropout and of M. A value that is given, as an option or in the user's
    file of settings, is the only one.
    """
    given = {*run.overrides}
    if run.chosen_config not in run.kind.configs:
        given |= {*read_yaml(run.chosen_config)}
    if given >= {"dropout", "megabatch_size"}:
        raise SettingsError(
            "dropout and megabatch_size are given, so nothing is left to tune; leave one of them"
            " out, or train without --tune"
        )
    dropouts: Sequence[float] = TUNED_DROPOUT
    if "dropout" in given:
        dropouts = (run.settings.dropout,)
    sizes: Sequence[int] = TUNED_MEGABATCH_SIZE
    if "megabatch_size" in given:
        sizes = (run.settings.megabatch_size,)
    return dropouts, sizes


def points(run: TrainingRun) -> list[tuple[float, int, Path]]:
    """Return dropout, M and output folder of each run of a search."""
    folder = grid_folder(run)
    grid = []
    for dropout, size in product(*values(run)):
        grid.append((dropout, size, folder / f"dropout-{dropout}-m-{size}"))
    return grid


def check_outputs(run: TrainingRun) -> None:
    """Refuse outputs that a search cannot use, and to resume a search that has not begun."""
    run.check_free()
    check_folder(run.checkpoints)
    grid = grid_folder(run)
    has_begun = is_own_folder(grid)
    if has_begun and not run.resume:
        raise SettingsError(
            f"{grid}: left by an earlier search; resume it with --resume, or remove it"
        )
    if run.resume and not has_begun:
        raise SettingsError(f"{grid}: not a search to resume; tune without --resume")
    check_own_folder(grid)
    started = {path.name.removesuffix(".checkpoints"): path for path in grid.glob("dropout-*")}
    for dropout, size, folder in points(run):
        _check_point(_point(run, dropout, size, folder))
        started.pop(folder.name, None)
    for folder in started.values():
        raise _other_settings(folder)


def _point(run: TrainingRun, dropout: float, size: int, folder: Path) -> TrainingRun:
    """Return the run of a point of the grid."""
    overrides = {**run.overrides, "dropout": dropout, "megabatch_size": size}
    return replace(run, output=folder, overrides=overrides, checks=False)


def _check_point(point: TrainingRun) -> None:
    """Refuse to resume a point of the grid with other settings."""
    checkpoints = complete_checkpoints(point.checkpoints)
    record = read_training_record(point.output)
    settings = asdict(point.settings)
    if record is None and checkpoints:
        check_settings(checkpoints[-1], settings)
    elif record is not None and record.settings != {"family": point.family, **settings}:
        raise _other_settings(point.output)


def _other_settings(folder: Path) -> SettingsError:
    return SettingsError(
        f"{folder}: other settings; resume with the same, or remove {folder.parent}"
    )


def _correlation(record: TrainingRecord) -> float:
    return record.scores[-1].correlation.pearson


def check_same_data(grid: Path, store: PairStore) -> None:
    """Refuse to resume a search with other data."""
    path = grid / _DATA
    if path.is_file() and read_json(path) != store.digest:
        raise SettingsError(
            f"{grid}: started with other data than {store.path}; resume with the same or remove it"
        )


def _save(record: TrainingRecord, folder: Path, run: TrainingRun) -> None:
    """Save the best model under the name of the output."""
    from st_paragram.core.model_directory.card import render
    from st_paragram.families.loading import load
    from st_paragram.learning.models.card import from_record
    from st_paragram.learning.models.load_save import save

    model = load(folder, device="cpu")
    card = render(from_record(record, facts_of(record)))
    save(model, run.output, card, run.overwrite, training=record)


def _record(point: TrainingRun) -> TrainingRecord:
    """Return the record of a point of the grid, after training it unless it is finished."""
    record = read_training_record(point.output)
    if record is None:
        return run_training(replace(point, resume=bool(complete_checkpoints(point.checkpoints))))
    return record
