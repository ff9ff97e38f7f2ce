"""mteb's tasks: what they find, and mteb's scores as a Markdown table."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.models import find_models
from st_paragram.tools.evaluation.mteb.data import LOCAL_TASKS, local_tasks, read_local_data
from st_paragram.tools.evaluation.results import MtebResult, MtebRun, MtebScores

MAIN_SCORE = "main_score"
_READING = "These are mteb's scores x 100. The main score is Spearman's correlation of STS, and F1 of Tatoeba and BUCC."
_SHOWN = ("cosine_spearman", "cosine_pearson", "f1", "accuracy")

RUN = MtebRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has the files of a task."""
    return bool(local_tasks(data))


def run(request: Request) -> MtebRun:
    """Score models on the tasks asked for, or on those that the folder has data of; errors as of `run_mteb`."""
    tasks = request.tasks or (local_tasks(request.data) if request.data else LOCAL_TASKS)
    return run_mteb(request.models, tasks, request.data, request.languages, request.mteb_results)


def run_mteb(
    names: Sequence[str],
    tasks: Sequence[str],
    data: str | Path | None = None,
    languages: Sequence[str] = (),
    output: str | Path | None = None,
) -> MtebRun:
    """Let mteb score models on its tasks.

    Args:
        names: of the models.
        tasks: mteb's names.
        data: folder of local files; None to have mteb fetch its own data.
        languages: see `make_tasks`.
        output: folder for mteb's own results files.

    Raises:
        EvaluationError, TextError, MissingExtraError: as `make_tasks` and `evaluate`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    from st_paragram.tools.evaluation.mteb.tasks import evaluate, make_tasks

    results: dict[str, MtebResult] = {}
    read = cache(read_local_data)
    find_models(names)
    with _quiet():
        for name in dict.fromkeys(names):
            made = make_tasks(tasks, data, languages, read)
            revisions = {task.metadata.name: task.metadata.revision for task in made}
            results[name] = evaluate(name, made, output)
            gc.collect()
    notes = dict.fromkeys(note for task in revisions for note in read(task, data).notes) if data else ()
    return MtebRun(results, revisions, tuple(notes))


def report(found: MtebRun) -> Iterator[str]:
    """A row for each task, subset and metric; where there are several subsets, their mean after them. Then notes."""
    yield f"{_READING}\n"
    models = list(found.models.values())
    rows = []
    for task, subsets in models[0].tasks.items():
        for metric in _metrics(next(iter(subsets.values()))):
            columns = [[_value(scores, metric) for scores in of.tasks[task].values()] for of in models]
            for subset, values in zip(subsets, zip(*columns, strict=True), strict=True):
                rows.append([task, subset, metric, *map(hundredths, values)])
            if len(subsets) > 1:
                rows.append(
                    [task, f"mean of {len(subsets)}", metric, *(hundredths(_mean(column)) for column in columns)]
                )
    yield markdown_table(["task", "subset", "metric", *found.models], rows)
    if found.notes:
        yield "\n" + "\n".join(f"- {note}" for note in found.notes)


def _metrics(scores: MtebScores) -> list[str]:
    return [metric for metric in _SHOWN if metric in scores.metrics] or [MAIN_SCORE]


def _value(scores: MtebScores, metric: str) -> float | None:
    return scores.main_score if metric == MAIN_SCORE else scores.metrics[metric]


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without mteb's running commentary, and its advice to take other tasks than the papers'."""
    logging.getLogger("mteb").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is superseded by ", UserWarning)
        yield
