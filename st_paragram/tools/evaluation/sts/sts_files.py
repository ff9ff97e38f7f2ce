"""Find the files of the STS benchmarks under a folder, in whichever layout they came, or on the hub.

Understood for STS 2012-2017 are folders whose names begin with `sts2012`, `STS12`, ... (so SentEval's `STS12-en-test`
and the tasks' own releases too) with either of

    MSRpar.tsv                                    rows `grade TAB sentence TAB sentence`
    STS.input.MSRpar.txt and STS.gs.MSRpar.txt    as the tasks published them; 2017: STS.input.track5.en-en.txt

and for the STS Benchmark `stsb/en-test.tsv` or the release's `STSBenchmark/sts-test.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError, one_line
from st_paragram.tools.evaluation.graded_pairs import (
    GradedPairs,
    graded_rows,
    read_benchmark_pairs,
    read_graded_pairs,
    read_senteval_pairs,
)
from st_paragram.tools.evaluation.published_sets import is_published
from st_paragram.tools.evaluation.sts.catalogue import (
    BENCHMARKS,
    NOT_SCORED,
    SMT,
    YEARS,
    Benchmark,
    SetInfo,
    select_sets,
)


@dataclass(frozen=True)
class StsData:
    """What was found.

    Args:
        sets: key ("2012/MSRpar") -> pairs, in the official order.
        concatenations: year -> pairs, of years that came from the hub, where the names of their sets are lost.
        notes: one line for everything missing or odd.
    """

    sets: dict[str, GradedPairs]
    concatenations: dict[str, GradedPairs]
    notes: tuple[str, ...]

    def altered(self) -> tuple[str, ...]:
        """The sets and years that are not what was published, by their digests, or by their sizes if that is all."""
        sizes = {info.key: info.pairs for info in select_sets((*BENCHMARKS, *NOT_SCORED))}
        sizes |= {year: sum(info.pairs for info in of.sets if info.key != SMT) for year, of in BENCHMARKS.items()}
        found = []
        for key, pairs in self.everything().items():
            published = is_published(key, pairs.first, pairs.second, pairs.grades)
            if published is False or (published is None and len(pairs) != sizes[key]):
                found.append(key)
        return tuple(found)

    def everything(self) -> dict[str, GradedPairs]:
        """Sets and concatenations together."""
        return {**self.sets, **self.concatenations}


def find_sts(folder: str | Path | None, only: Sequence[str] = (), hub: bool = False) -> StsData:
    """Read what is there of the benchmarks.

    Args:
        folder: that holds a folder for each benchmark; None if all come from the hub.
        only: names of benchmarks ("2012", "2017", "stsb") or sets ("2017/en-en"); all if empty.
        hub: fetch benchmarks that the folder does not have at all from the Hugging Face hub.

    Raises:
        SettingsError: a name in `only` is unknown.
        EvaluationError: nothing was found, or sentences without their gold.
        TextError: a file cannot be read as graded pairs.
        MissingExtraError: the package datasets is needed and not installed.
    """
    if folder is not None and not Path(folder).is_dir():
        raise EvaluationError(f"{folder}: no such folder; give a folder with sts2012, STS12-en-test or similar")
    wanted = select_sets(only)
    data = StsData({}, {}, ())
    for name in dict.fromkeys(info.benchmark for info in wanted):
        infos = [info for info in wanted if info.benchmark == name]
        found = _of_benchmark(Path(folder), infos) if folder is not None else StsData({}, {}, ())
        if hub and not found.sets:
            found = StsData(*_hub_pairs(infos), ())
        notes = found.notes + tuple(_count_notes(found)) + tuple(_missing_notes(infos, found, folder))
        data = StsData(data.sets | found.sets, data.concatenations | found.concatenations, data.notes + notes)
    if not data.everything():
        raise EvaluationError(f"{folder or 'the hub'}: nothing of STS {', '.join(only) or 'at all'}; {_EXPECTED}")
    return data


_EXPECTED = "expected e.g. sts2012/MSRpar.tsv or STS12-en-test/STS.input.MSRpar.txt; --hub reads the Hugging Face hub"


def benchmark_folders(folder: Path, benchmark: str) -> list[Path]:
    """Folders under `folder`, or under its folder `STS`, whose name says that they hold this benchmark."""
    pattern = "sts-?_?b(enchmark)?" if benchmark == "stsb" else rf"sts[-_]?(20)?{benchmark[2:]}(?!\d).*"
    parents = [folder, *(path for path in folder.iterdir() if path.name.lower() == "sts" and path.is_dir())]
    inside = [path for parent in parents for path in sorted(parent.iterdir()) if path.is_dir()]
    return [path for path in inside if re.fullmatch(pattern, path.name, re.IGNORECASE)]


def has_sts(folder: Path, names: Iterable[str]) -> bool:
    """Whether there are files in a folder of one of these years of STS, or of the STS Benchmark ("stsb")."""
    return any(any(place.iterdir()) for name in names for place in benchmark_folders(folder, name))


def _of_benchmark(folder: Path, infos: list[SetInfo]) -> StsData:
    folders = benchmark_folders(folder, infos[0].benchmark)
    found = {info.key: pairs for info in infos if (pairs := _read(info, folders)) is not None}
    named = {key: replace(pairs, name=key) for key, pairs in found.items()}
    known = {stem for info in BENCHMARKS[infos[0].benchmark].sets for stem in info.stems}
    strange = sorted({path.name for place in folders for path in place.glob("*.tsv") if path.stem not in known})
    notes = (f"{infos[0].benchmark}: unknown files left out: {', '.join(strange)}",) if strange else ()
    return StsData(named, {}, notes)


def _read(info: SetInfo, folders: list[Path]) -> GradedPairs | None:
    for stem in info.stems:
        if path := _first(folders, f"{stem}.tsv"):
            return read_graded_pairs(path)
        if path := _first(folders, f"{stem}.csv"):
            return read_benchmark_pairs(path)
        for task in ("STS", f"STS{info.benchmark}"):  # 2016's release puts the year there
            sentences = _first(folders, f"{task}.input.{stem}.txt")
            gold = _first(folders, f"{task}.gs.{stem}.txt")
            if sentences and not gold:
                raise EvaluationError(
                    f"{sentences}: its gold {task}.gs.{stem}.txt is missing; put it in the same folder"
                )
            if sentences and gold:
                return read_senteval_pairs(sentences, gold)
    return None


def _first(folders: list[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _count_notes(found: StsData) -> list[str]:
    infos = {info.key: info for info in select_sets((*BENCHMARKS, *NOT_SCORED))}
    notes = [
        f"{key}: {len(pairs)} pairs, but officially {infos[key].pairs}; figures are not comparable"
        for key, pairs in found.sets.items()
        if len(pairs) != infos[key].pairs
    ]
    for year, pairs in found.concatenations.items():
        official = sum(info.pairs for info in BENCHMARKS[year].sets if info.key != SMT)
        if len(pairs) != official:
            notes.append(f"{year}: {len(pairs)} pairs on the hub, but officially {official}")
    return notes


def _missing_notes(infos: list[SetInfo], found: StsData, folder: str | Path | None) -> list[str]:
    name = infos[0].benchmark
    if name in found.concatenations:
        return [f"{name}: the hub has the year in one piece, so there is nothing by the papers' protocol"]
    if not found.sets:
        return [f"{name}: nothing under {folder or 'the hub'}"]
    missing = (info for info in infos if info.key not in found.sets)
    return [f"{info.key} is missing" + (f" ({info.terms})" if info.terms else "") for info in missing]


def _hub_pairs(infos: Sequence[SetInfo]) -> tuple[dict[str, GradedPairs], dict[str, GradedPairs]]:
    """Fetch sets of one benchmark as mteb keeps them, by the package datasets.

    Returns:
        Sets by key (2017, STS Benchmark), and concatenations by year (2012-2016, whose sets' names are lost there).

    Raises:
        MissingExtraError: the package datasets is not installed.
        EvaluationError: the hub does not give the data.
        TextError: a row is not a graded pair.
    """
    benchmark = BENCHMARKS[infos[0].benchmark]
    if benchmark.name in YEARS:
        return {}, {benchmark.name: _fetch(benchmark.name, benchmark, None, "test")}
    subsets = {info.key: info.mteb for info in infos if info.mteb}
    if benchmark.name == "stsb":
        return {key: _fetch(key, benchmark, None, split) for key, split in subsets.items()}, {}
    return {key: _fetch(key, benchmark, subset, "test") for key, subset in subsets.items()}, {}


def _fetch(name: str, benchmark: Benchmark, subset: str | None, split: str) -> GradedPairs:
    load_dataset = require("datasets", "eval", "data of the hub").load_dataset
    try:
        data: Any = load_dataset(benchmark.hub, subset, split=split, revision=benchmark.revision)
        rows = list(zip(data["score"], data["sentence1"], data["sentence2"], strict=True))
    except Exception as error:  # datasets raises what its many parts raise
        reason = one_line(str(error).split("\n")[0])
        raise EvaluationError(
            f"{name}: the hub did not give {benchmark.hub} ({type(error).__name__}: {reason}); try --data with files"
        ) from error
    return graded_rows(name, rows)
