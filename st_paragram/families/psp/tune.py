"""The paper's search for the best dropout and largest M: a grid of training runs, the best of which stays."""

from __future__ import annotations

import logging
import shutil
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from st_paragram.core.encoding.record import Correlation, TranslationScore
from st_paragram.core.files import read_json, write_json
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import DAMAGED, SettingsError, one_line
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.training import progress
from st_paragram.learning.training.checkpoints import finished
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.learning.training.train import TrainingReport, TrainingResult, train
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.translations import Translations

logger = logging.getLogger(__name__)

#: The grid of EMNLP 2022 for bitext.
TUNED_DROPOUT = (0.0, 0.1, 0.3)
TUNED_MEGABATCH_SIZE = (60, 100, 140)

_MODEL, _RESULT = "model", "result.json"


def tune(
    store: PairStore,
    settings: TrainingSettings,
    development: GradedPairs,
    checkpoints: str | Path,
    resume: bool = False,
    translations: Translations | None = None,
) -> tuple[TrainingResult, list[TrainingReport]]:
    """Train the paper's grid, dropout x M.

    Args:
        store: As in `train`.
        settings: All but dropout and `megabatch_size`.
        development: As in `train`; Pearson's correlation on them chooses the best.
        checkpoints: A folder; each point of the grid has one inside.
        resume: Keep the finished points of the grid, and continue the interrupted point. Points
            of other settings or of other data are refused.
        translations: As in `train`.

    Returns:
        The best, and the reports on all, best first.

    Raises:
        SettingsError: As in `train`, or a finished point is of other settings or data.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    points: list[tuple[TrainingReport, Path]] = []
    for dropout, size in product(TUNED_DROPOUT, TUNED_MEGABATCH_SIZE):
        point = replace(settings, dropout=dropout, megabatch_size=size)
        folder = Path(checkpoints) / f"dropout-{dropout}-m-{size}"
        logger.info("tuning: dropout %s, M %d", dropout, size)
        if resume and (folder / _RESULT).is_file():
            progress.read(folder, progress.values_of(point), store)
        else:
            interrupted = resume and bool(finished(folder))
            _keep(train(store, point, development, folder, interrupted, translations), folder)
        points.append((_kept(folder, point), folder))
    points.sort(key=lambda point: point[0].after.pearson, reverse=True)
    best, folder = points[0]
    return TrainingResult(model_directory.load(folder / _MODEL), best), [report for report, _ in points]


def _keep(result: TrainingResult, folder: Path) -> None:
    """Keep a point of the grid on disk, without its checkpoints."""
    model_directory.save(result.model, folder / _MODEL, overwrite=True)
    values = {name: value for name, value in asdict(result.report).items() if name != "settings"}
    write_json(folder / _RESULT, values)
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)


def _kept(folder: Path, settings: TrainingSettings) -> TrainingReport:
    try:
        values = read_json(folder / _RESULT)
        before, after = (_correlation(values[when]) for when in ("before", "after"))
        found = tuple(TranslationScore(**score) for score in values.get("translations", ()))
        seconds, rate = float(values["seconds"]), float(values["pairs_per_second"])
    except DAMAGED as error:
        seen = f"not the result of a training run ({one_line(error)})"
        raise SettingsError(f"{folder / _RESULT}: {seen}; remove it, so that this point is trained again") from error
    tried = f"dropout {settings.dropout}  M {settings.megabatch_size}"
    return TrainingReport(settings, seconds, rate, before, after, found, tried=tried)


def _correlation(values: dict[str, Any]) -> Correlation:
    return Correlation(**{name: float(value) for name, value in values.items()})
