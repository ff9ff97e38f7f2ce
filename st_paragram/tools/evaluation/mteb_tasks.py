"""Tasks of mteb, scored by mteb, which also writes its result files.

The results are in mteb's layout, DIR/results/MODEL/REVISION/TASK.json with `model_meta.json`, as
`mteb run` writes them and `mteb submit-results` reads them. mteb does not repeat finished tasks. A
folder of evaluation data can stand in for the data of STS12-STS16, STS17, STSBenchmark and Tatoeba.
Results on such copies have the data set revision "local" and are kept apart, in DIR/local.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError, SettingsError, one_line
from st_paragram.tools.evaluation import report, sts_sets, translations
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.scores import Score

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

LOCAL = "local"  # revision of data from a folder, and folder of the results on them
_STS_BENCHMARK = "STSBenchmark"
_STS17 = "STS17"
_TATOEBA = "Tatoeba"
_SPLIT = "test"

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class MtebTasks:
    """Tasks to run, and where their results are stored."""

    results: Path
    on_hub: list[AbsTask]
    local: list[AbsTask]


def find(data: Path, benchmark: str) -> bool:
    """Return False: mteb's tasks run only on request."""
    return False


def read(request: Request) -> MtebTasks:
    """Return the requested tasks, with the data of a folder where it has them."""
    mteb = require("mteb", "eval", "tasks of mteb")
    languages = [_language(code) for code in request.languages]
    try:
        tasks = mteb.get_tasks(tasks=list(request.tasks))
    except (KeyError, ValueError) as error:
        raise SettingsError(
            f"--tasks {' '.join(request.tasks)}: {one_line(error)}; `mteb available-tasks` lists"
            " the tasks"
        ) from error
    data = MtebTasks(request.results, [], [])
    for task in tasks:
        if languages:
            task.filter_languages(languages)
        name = task.metadata.name
        columns = _columns(name, request.data) if request.data else {}
        if columns:
            data.local.append(_with_data(task, columns))
        elif request.hub:
            data.on_hub.append(task)
        else:
            raise EvaluationError(
                f"{request.data}: no data of mteb's task {name}; give --hub, or another folder"
            )
    return data


def _language(code: str) -> str:
    """Return a language as mteb names it, without its script: "spa" for es."""
    from st_paragram.tools.evaluation.mteb_model import mteb_language

    language = mteb_language(code)
    if language is None:
        raise SettingsError(f"--languages: {code!r} is not a language code; use codes such as es")
    return language.partition("-")[0]


def _columns(task: str, data: Path) -> dict[str, Columns]:
    """Return subset -> columns of a task, from a folder; empty if the folder has no data of it."""
    if task == _TATOEBA:
        return _tatoeba_columns(data)
    if task == _STS_BENCHMARK:
        keys = ["stsb/test"]
    elif task == _STS17:
        keys = [info.key for info in sts_sets.SETS["2017"] if info.mteb]
    else:
        year = task.replace("STS", "20", 1)
        if year not in sts_sets.YEARS:
            return {}
        keys = [info.key for info in sts_sets.SETS[year] if info.key != sts_sets.SMT]
    sets = sts_sets.read_sets(data, keys)
    if task != _STS17:
        return {"default": _graded_columns(sets.values())} if len(sets) == len(keys) else {}
    subsets = {}
    for key, pairs in sets.items():
        subsets[sts_sets.INFOS[key].mteb.partition("/")[2]] = _graded_columns([pairs])
    return subsets


def _tatoeba_columns(data: Path) -> dict[str, Columns]:
    if not translations.find(data, "tatoeba"):
        return {}
    request = Request([], benchmark="tatoeba", data=data)
    subsets = {}
    for pairs in translations.read(request).pairs:
        columns: Columns = {"sentence1": pairs.first, "sentence2": pairs.second}
        subsets[f"{pairs.name}-{translations.ENGLISH}"] = columns
    return subsets


def _graded_columns(sets: Iterable[GradedPairs]) -> Columns:
    """Return the columns of several sets, one after another."""
    columns: Columns = {"sentence1": [], "sentence2": [], "score": []}
    for pairs in sets:
        columns["sentence1"] += pairs.first
        columns["sentence2"] += pairs.second
        columns["score"] += pairs.grades
    return columns


def _with_data(task: AbsTask, columns: Mapping[str, Columns]) -> AbsTask:
    """Give a task its data, for those of its subsets that there are."""
    datasets = require("datasets", "eval", "tasks of mteb")
    subsets = {}
    for name in task.hf_subsets:
        if name in columns:
            dataset = datasets.Dataset.from_dict(columns[name])
            subsets[name] = datasets.DatasetDict({_SPLIT: dataset})
    if not subsets:
        raise EvaluationError(
            f"{task.metadata.name}: the data have none of the languages; they have"
            f" {', '.join(columns)}"
        )
    task.hf_subsets = list(subsets)
    task.dataset = subsets if task.metadata.is_multilingual else subsets["default"]
    task.data_loaded = True
    source = {"path": LOCAL, "revision": LOCAL}
    task.metadata = task.metadata.model_copy(update={"dataset": source})
    return task


def score(name: str, model: TextEncoder, data: MtebTasks) -> Iterator[Score]:
    """Score a model with mteb; yield its main score of each task and subset."""
    from st_paragram.tools.evaluation.mteb_model import model_meta

    meta = model_meta(name)
    runs = ((data.on_hub, data.results), (data.local, data.results / LOCAL))
    for tasks, folder in runs:
        yield from _run(name, meta, tasks, folder=folder, size=batch_size(model))


def _run(
    name: str, meta: Any, tasks: Sequence[AbsTask], *, folder: Path, size: int
) -> Iterator[Score]:
    import mteb

    if not tasks:
        return
    # it logs each step, and warns that it cannot count what `model_meta` has counted
    logging.getLogger("mteb").setLevel(logging.ERROR)
    cache = mteb.ResultCache(folder)
    options: Any = {"batch_size": size}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # old names of sentence-transformers
        results = mteb.evaluate(meta, tasks, cache=cache, encode_kwargs=options)
    for result in results.task_results:
        measure = mteb.get_task(result.task_name).metadata.main_score
        value = result.get_score()
        yield Score(name, "mteb", result.task_name, measure=measure, value=value)
        subsets = list(chain.from_iterable(result.scores.values()))
        if len(subsets) == 1:
            continue
        for entry in subsets:
            label = f"{result.task_name}/{entry['hf_subset']}"
            yield Score(name, "mteb", label, measure=measure, value=entry["main_score"])


def tables(scores: list[Score], data: MtebTasks) -> Iterator[str]:
    """Yield a table of the main scores, and where the result files are."""
    yield from report.section(
        "mteb: main score x 100 of each task",
        scores,
        row=_label,
        column=report.MODEL,
        corner="task",
    )
    if data.on_hub:
        yield (
            f"- Results: {data.results}; to submit them, run `mteb submit-results --output-folder"
            f" {data.results}`."
        )
    if data.local:
        names = ", ".join(task.metadata.name for task in data.local)
        yield f"- Results on local data ({names}): {data.results / LOCAL}"


def _label(score: Score) -> str:
    return f"{score.set} ({score.measure})"
