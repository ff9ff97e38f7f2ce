"""Tasks of mteb, fed from local files without a network, or from the hub as mteb does it."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from st_paragram.core.encoding.models import batch_size
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.mteb.data import LOCAL_TASKS, LocalData, read_local_data
from st_paragram.tools.evaluation.mteb.model import import_mteb, register
from st_paragram.tools.evaluation.results import MtebResult, MtebScores
from st_paragram.tools.evaluation.tatoeba import CODES

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

logger = logging.getLogger(__name__)


def make_tasks(
    names: Sequence[str],
    data: str | Path | None = None,
    languages: Sequence[str] = (),
    read: Callable[[str, str | Path], LocalData] = read_local_data,
) -> list[AbsTask]:
    """Fresh tasks: mteb changes a task as it runs, so create them again for each model.

    Args:
        names: mteb's, e.g. "STS12", "Tatoeba".
        data: folder of local files, see `read_local_data`. Results then name as revision of the data "local-" and a
            hash of the task's sentences and scores, so that mteb mixes them neither with its own data's results nor
            with those of other files. If not given, mteb fetches its own data.
        languages: of tasks of several languages, take the subsets of these languages alone or with English (ISO 639-3,
            or two letters for this project's languages), or of that name ("es-en"). All there are if not given. A task
            of several languages with none of these is left out; a task of one language stays, whichever that is.
        read: reads a task's local files.

    Raises:
        EvaluationError: mteb has no such task, it cannot be fed from local files, its files are not there, or no task
            has one of the languages.
        TextError: a file is broken.
        MissingExtraError: mteb is not installed.
    """
    tasks, seen = [], set[str]()
    wanted = [CODES.get(language, "eng" if language == "en" else language) for language in languages]
    for name in names:
        task = _task(name)
        local = read(name, data) if data is not None else None
        subsets = [subset for subset in task.hf_subsets if local is None or subset in local.subsets]
        if not subsets:
            raise EvaluationError(f"{data}: no subset of {name}; mteb has {', '.join(task.hf_subsets[:8])} ...")
        if task.metadata.is_multilingual and languages:
            matches = {subset: _matching(task, subset, wanted) for subset in subsets}
            subsets = [subset for subset in subsets if matches[subset]]
            seen.update(*matches.values())
        else:
            seen.update(*(_languages(task, subset) for subset in subsets))
        if not subsets:
            logger.warning("%s has none of the languages %s; left out", name, " ".join(languages))
            continue
        tasks.append(_fed(task, subsets, local))
    if absent := [given for given, code in zip(languages, wanted, strict=True) if code not in seen]:
        where = f"{data}" if data is not None else "mteb"
        raise EvaluationError(f"{where}: nothing of {' '.join(absent)} in {' '.join(names)}; check --languages")
    return tasks


def evaluate(name: str, tasks: Iterable[AbsTask], output: str | Path | None = None) -> MtebResult:
    """Let mteb score a model on its tasks.

    Args:
        name: whatever `st_paragram.load` reads.
        tasks: fresh ones, as `make_tasks` makes them.
        output: folder for mteb's own results, `results/<model>/<revision>/<task>.json`. What is there already for the
            same weights and the same data is not computed again. Nothing is written if not given.

    Raises:
        EvaluationError: a task's data cannot be had from the hub, or its results file is damaged.
        ModelDirectoryError: as by `model_meta`.
        MissingExtraError: mteb is not installed.
    """
    mteb = import_mteb()
    model = register(name).load_model()
    cache = mteb.ResultCache(output) if output is not None else None
    results: dict[str, dict[str, MtebScores]] = {}
    for task in tasks:
        logger.info("%s: %s", name, task.metadata.name)
        try:
            result = mteb.evaluate(
                model,
                task,
                cache=cache,
                overwrite_strategy="only-missing",
                encode_kwargs={"batch_size": batch_size(cast("Any", model).model), "show_progress_bar": False},
                co2_tracker=False,
                show_progress_bar=False,
            )
        except ConnectionError as error:
            reason = str(error).split("\n")[0]
            raise EvaluationError(
                f"{task.metadata.name}: its data cannot be fetched ({reason}); give --data"
            ) from error
        except json.JSONDecodeError as error:  # mteb does not write its files in one go
            message = f"{task.metadata.name}: its file {task.metadata.name}.json under {output} is damaged; remove it"
            raise EvaluationError(message) from error
        results[task.metadata.name] = _scores(result.task_results[0].scores, task)
    return MtebResult(results)


def _task(name: str) -> AbsTask:
    mteb = import_mteb()
    try:
        task: AbsTask = mteb.get_task(name)
    except KeyError as error:
        raise EvaluationError(f"mteb has no task {name!r}; local files feed {', '.join(LOCAL_TASKS)}") from error
    return task


def _matching(task: AbsTask, subset: str, wanted: Sequence[str]) -> set[str]:
    """Those of the languages that bring in this subset."""
    codes = _languages(task, subset)
    codes = codes - {"eng"} or codes
    return ({subset} & {*wanted}) | (codes if codes <= {*wanted} else set())


def _languages(task: AbsTask, subset: str) -> set[str]:
    """ISO 639-3 codes of a subset."""
    return {code.split("-")[0] for code in task.metadata.hf_subsets_to_langscripts[subset]}


def _fed(task: AbsTask, subsets: list[str], local: LocalData | None) -> AbsTask:
    """The task restricted to subsets, its data loaded if they are local."""
    task.hf_subsets = subsets
    if local is None:
        return task
    from datasets import Dataset, DatasetDict

    data = {
        subset: DatasetDict({split: Dataset.from_dict(columns) for split, columns in local.subsets[subset].items()})
        for subset in subsets
    }
    task.dataset = data if task.metadata.is_multilingual else data["default"]
    task.data_loaded = True
    task.metadata = task.metadata.model_copy(update={"dataset": {**task.metadata.dataset, "revision": local.revision}})
    return task


def _scores(scores: dict[str, list[dict[str, Any]]], task: AbsTask) -> dict[str, MtebScores]:
    """Of what mteb's file holds, the subsets asked for."""
    found: dict[str, MtebScores] = {}
    for split in task.eval_splits:
        for subset in scores[split]:
            if subset["hf_subset"] in task.hf_subsets:
                label = subset["hf_subset"] + ("" if split == "test" else f" ({split})")
                figures = {key: _defined(value) for key, value in subset.items() if isinstance(value, float)}
                found[label] = MtebScores(figures.pop("main_score", None), figures)
    return {label: found[label] for label in sorted(found)}


def _defined(value: float) -> float | None:
    return value if math.isfinite(value) else None
