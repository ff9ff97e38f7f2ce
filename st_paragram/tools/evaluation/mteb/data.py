"""Local files as the data of mteb's tasks: their subsets, splits and columns.

Below one folder: the STS sets wherever `find_sts` finds them, `tatoeba/xxx-eng.tsv`, and `bucc2018/zh-en.sample.zh`,
`.en`, `.gold` or other files of that shared task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.base import inner_folder
from st_paragram.tools.evaluation.bucc_files import BUCC_PAIRS, bucc_prefix, read_bucc
from st_paragram.tools.evaluation.graded_pairs import GradedPairs, concatenate
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, NOT_SCORED, SMT, YEARS
from st_paragram.tools.evaluation.sts.sts_files import find_sts
from st_paragram.tools.evaluation.tatoeba import tatoeba_sets
from st_paragram.tools.evaluation.translations import read_translations

Columns = Mapping[str, "list[str] | list[float]"]

_STS = {benchmark.task: benchmark for benchmark in BENCHMARKS.values()}
LOCAL_TASKS = (*_STS, "Tatoeba", "BUCC.v2")
REVISION_DIGITS = 12


@dataclass(frozen=True)
class LocalData:
    """Everything a folder has for a task.

    Args:
        subsets: mteb's name of a subset -> split -> columns, as in the hub's data set.
        kind: how the revision begins.
        notes: one line for everything missing or odd.
    """

    subsets: Mapping[str, Mapping[str, Columns]]
    kind: str = "local"
    notes: tuple[str, ...] = ()

    @property
    def revision(self) -> str:
        """The kind, and the start of the SHA-256 of all subsets, however the files are written.

        It does not depend on the languages chosen, so that results of one language after another gather in one file.
        """
        digest = hashlib.sha256()
        for subset in sorted(self.subsets):
            content = [subset, {split: dict(columns) for split, columns in self.subsets[subset].items()}]
            digest.update(json.dumps(content, sort_keys=True).encode())
        return f"{self.kind}-{digest.hexdigest()[:REVISION_DIGITS]}"


def read_local_data(task: str, folder: str | Path) -> LocalData:
    """Read all that a folder has for a task of mteb.

    Raises:
        EvaluationError: no local files are known for this task, or the folder has none, or (STS of a year) not all.
        TextError: a file is broken.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise EvaluationError(f"{folder}: no such folder; give one of evaluation data with --data")
    if task in _STS:
        return _sts(task, folder)
    if task == "Tatoeba":
        return _tatoeba(inner_folder(folder, "tatoeba"))
    if task == "BUCC.v2":
        return _bucc(inner_folder(folder, "bucc2018"))
    raise EvaluationError(f"{task} cannot be fed from local files, only {', '.join(LOCAL_TASKS)}; leave out --data")


def local_tasks(folder: str | Path) -> list[str]:
    """Tasks of mteb that a folder has the files of.

    Raises:
        TextError: a file is broken.
    """
    found = []
    for task in LOCAL_TASKS:
        with suppress(EvaluationError):  # there is nothing for this task, or not everything
            read_local_data(task, folder)
            found.append(task)
    return found


def _sts(task: str, folder: Path) -> LocalData:
    benchmark = _STS[task]
    infos = [info for info in benchmark.sets if info.key not in (SMT, *NOT_SCORED)]
    if benchmark.name == "2017":
        infos = [info for info in infos if info.mteb]
    data = find_sts(folder, [info.key for info in infos])
    needed = infos if benchmark.name in YEARS else [info for info in infos if info.key == "stsb/test"]
    if missing := [info.key for info in needed if info.key not in data.sets]:
        raise EvaluationError(f"{folder}: {', '.join(missing)} missing, without which there is no {task}; add the file")
    if benchmark.name in YEARS:
        whole = _graded(concatenate(task, data.sets.values()))
        return LocalData({"default": {"test": whole}}, notes=data.notes)
    columns = {info.mteb: _graded(data.sets[info.key]) for info in infos if info.key in data.sets}
    if benchmark.name == "2017":
        return LocalData({track: {"test": graded} for track, graded in columns.items()}, notes=data.notes)
    return LocalData({"default": columns}, notes=data.notes)  # splits "validation" and "test"


def _tatoeba(folder: Path) -> LocalData:
    found = {code: read_translations(source, code) for code, source in tatoeba_sets(folder).items()}
    return LocalData(
        {f"{code}-eng": {"test": _translations(pairs.first, pairs.second)} for code, pairs in found.items()}
    )


def _bucc(folder: Path) -> LocalData:
    """The gold pairs alone, as in mteb's set, which is that of the training part (1,899 pairs of zh-en).

    Which part the files are becomes a part of the revision: the sample's figures are not comparable with mteb's.
    """
    subsets, parts = {}, []
    for pair in BUCC_PAIRS:
        if not any(folder.rglob(f"{pair}.*.gold")):
            continue
        training = next(folder.rglob(f"{pair}.training.gold"), None)
        texts = read_bucc(training.with_suffix("") if training else bucc_prefix(folder, pair), pair)
        parts.append(texts.name.removeprefix(f"{pair}."))
        first, second = zip(*((texts.source[i], texts.target[j]) for i, j in texts.gold), strict=True)
        subsets[pair] = {"test": _translations(list(first), list(second))}
    if not subsets:
        raise EvaluationError(f"{folder}: no files of BUCC 2018; they are named like zh-en.sample.zh, .en and .gold")
    return LocalData(subsets, f"local-{'-'.join(sorted(set(parts)))}")


def _translations(first: list[str], second: list[str]) -> Columns:
    return {"sentence1": first, "sentence2": second}


def _graded(pairs: GradedPairs) -> Columns:
    return {"sentence1": pairs.first, "sentence2": pairs.second, "score": pairs.grades}
