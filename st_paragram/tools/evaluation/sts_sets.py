"""The sets of STS 2012-2017 and of the STS Benchmark, in a folder or on the Hugging Face hub.

`sts_sets.yaml` describes the sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from st_paragram.core.settings import read_yaml
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import EvaluationError, SettingsError, TextError
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    finite,
    graded_pairs,
    read_cells,
    read_graded_pairs,
)
from st_paragram.tools.evaluation.hub_data import HubData
from st_paragram.tools.evaluation.known_sets import known_digests, name_of_graded
from st_paragram.tools.evaluation.request import Request


@dataclass(frozen=True)
class SetInfo:
    """One data set."""

    benchmark: str  # a year or "stsb"
    name: str  # such as "MSRpar", "es-en" or "dev"
    pairs: int  # official number of graded pairs
    stem: str  # stem of the file name; by default the name
    archived: str = ""  # the same in the organizers' archive, if it is another
    mteb: str = ""  # mteb's name of the set, if mteb scores it separately
    split: str = "test"  # split of the data set on the hub; empty if the set is not there

    @property
    def key(self) -> str:
        """Benchmark and name, such as "2012/MSRpar"."""
        return f"{self.benchmark}/{self.name}"

    @property
    def folder(self) -> str:
        """Name of its folder, such as "sts2012" or "stsb"."""
        return self.benchmark if self.benchmark == "stsb" else f"sts{self.benchmark}"


#: Benchmark -> its entry in `sts_sets.yaml`.
ENTRIES = read_yaml(Path(__file__).with_name("sts_sets.yaml"))
#: Benchmark -> its sets, in the official order.
SETS: dict[str, list[SetInfo]] = {}
for _benchmark, _entry in ENTRIES.items():
    SETS[_benchmark] = []
    for _name, _fields in _entry["sets"].items():
        SETS[_benchmark].append(SetInfo(_benchmark, _name, **{"stem": _name} | _fields))
INFOS = {info.key: info for info in chain.from_iterable(SETS.values())}
YEARS = ("2012", "2013", "2014", "2015", "2016")
SMT = "2013/SMT"
NOT_SCORED = "stsb/train"  # unless requested by its key
# bytes; larger files, such as mined text with scores, are not sets
_LONGEST_ROW = 1 << 16
_LARGEST_FILE = 1 << 22


def select_sets(names: Sequence[str] = ()) -> list[SetInfo]:
    """Return sets by names of benchmarks ("2012", "stsb") and sets ("2017/en-en", "stsb/dev").

    They are in the official order. Without names, return all sets except the training part of the
    STS Benchmark.
    """
    for name in names:
        benchmark = name.partition("/")[0]
        if benchmark not in SETS:
            raise SettingsError(f"{name!r} is not an STS benchmark; choose from {', '.join(SETS)}")
        if name != benchmark and name not in INFOS:
            keys = [info.key for info in SETS[benchmark]]
            raise SettingsError(
                f"{name!r} is not a set of STS {benchmark}; choose from {', '.join(keys)}"
            )
    benchmarks = names or tuple(SETS)
    selected = []
    for key, info in INFOS.items():
        if key in names or (info.benchmark in benchmarks and key != NOT_SCORED):
            selected.append(info)
    return selected


@dataclass(frozen=True)
class StsData:
    """The available STS sets."""

    #: Key ("2012/MSRpar") -> pairs, in the official order; a year from the hub, without names of
    #: sets, is "2012".
    sets: dict[str, GradedPairs]
    notes: Sequence[str] = ()  # one line for each missing item
    from_hub: frozenset[str] = frozenset()  # keys of the sets and years from the hub

    @cached_property
    def altered(self) -> list[str]:
        """Return the sets and years that are not the published ones.

        They are recognized by their digest. Data of the hub have a fixed revision, and SMT has no
        known digest, so only the number of pairs is checked.
        """
        altered = []
        for key, pairs in self.sets.items():
            if key in self.from_hub or key not in known_digests()["sts"]:
                is_published = len(pairs) == _published_pairs(key)
            else:
                is_published = name_of_graded(pairs) == key
            if not is_published:
                altered.append(key)
        return altered


def _published_pairs(key: str) -> int:
    if key in INFOS:
        return INFOS[key].pairs
    return sum(info.pairs for info in SETS[key] if info.key != SMT)


def is_in(data: Path, benchmarks: Sequence[str]) -> bool:
    """Whether a folder has data of some benchmarks in `SETS`, by the names or by the content."""
    if any(_sts_folders(data, benchmarks)):
        return True
    infos = [info for info in INFOS.values() if info.benchmark in benchmarks]
    return bool(_read_folder(data, infos))


def find(data: Path, benchmark: str) -> bool:
    """Whether a folder of evaluation data has sets of STS."""
    return is_in(data, tuple(SETS))


def _sts_folders(data: Path, benchmarks: Iterable[str]) -> Iterator[Path]:
    """Yield the nonempty folders of some benchmarks."""
    for benchmark in benchmarks:
        for name in (f"sts{benchmark}", f"STS{benchmark[2:]}-en-test", benchmark):
            folder = data / name
            if folder.is_dir() and any(folder.iterdir()):
                yield folder


def read(request: Request) -> StsData:
    """Read the requested STS benchmarks and sets (default: all) from a folder or from the hub.

    A folder has `sts2012/MSRpar.tsv`, ..., `sts2017/track5.en-en.tsv` and `stsb/en-test.tsv` (a
    grade and two sentences), or SentEval's folders, `STS12-en-test/STS.input.MSRpar.txt` and
    `STS.gs.MSRpar.txt`. The published sets are recognized by their content, also in files with
    other names. If the request allows the hub, benchmarks that are missing from the folder are
    loaded from the hub.
    """
    place = request.data or "the hub"
    selected = select_sets(request.sets)
    in_folder = _read_folder(request.data, selected) if request.data else {}
    available: dict[str, GradedPairs] = {}
    notes: list[str] = []
    from_hub: set[str] = set()
    for benchmark in dict.fromkeys(info.benchmark for info in selected):
        infos = [info for info in selected if info.benchmark == benchmark]
        sets = {info.key: in_folder[info.key] for info in infos if info.key in in_folder}
        if request.hub and not sets:
            sets = _load(benchmark, infos)
            from_hub.update(sets)
        available |= sets
        if not sets:
            notes.append(f"{benchmark}: no data in {place}")
        elif benchmark in sets:
            notes.append(
                f"{benchmark}: the hub combines the sets of a year, so the papers' protocol is not"
                " available"
            )
        else:
            notes += [_missing(info) for info in infos if info.key not in sets]
    if not available:
        raise EvaluationError(
            f"{place}: no STS data for {', '.join(request.sets) or 'any set'}; name files like"
            " sts2012/MSRpar.tsv, STS12-en-test/STS.input.MSRpar.txt or stsb/en-test.tsv"
        )
    return StsData(available, notes, frozenset(from_hub))


def _missing(info: SetInfo) -> str:
    if info.key == SMT:
        return f"{SMT} is missing; only the Linguistic Data Consortium may distribute it"
    return f"{info.key} is missing"


def read_sets(data: Path, keys: Iterable[str]) -> dict[str, GradedPairs]:
    """Return key -> pairs of those sets that a folder has, in the order of the keys."""
    return _read_folder(data, [INFOS[key] for key in keys])


def _read_folder(data: Path, infos: Iterable[SetInfo]) -> dict[str, GradedPairs]:
    """Return key -> pairs of those sets that a folder has.

    A set is known by its content, or else by the names of its file and folder.
    """
    keys = {}
    for info in infos:
        path = _named_file(data, info)
        if path is not None:
            keys[path] = info.key
    by_name = {}
    by_content = {}
    for path in dict.fromkeys((*keys, *_graded_files(data))):
        try:
            pairs = _read_set(path)
        except TextError:
            if path in keys:
                raise
            continue
        name = name_of_graded(pairs)
        if name:
            by_content[name] = pairs
        elif path in keys:
            by_name[keys[path]] = pairs
    sets = by_name | by_content
    return {info.key: sets[info.key] for info in infos if info.key in sets}


def _named_file(data: Path, info: SetInfo) -> Path | None:
    """Return the file that has the names of a set, a table or the sentences of the STS tasks."""
    for folder in _sts_folders(data, [info.benchmark]):
        for name in (f"{info.stem}.tsv", f"STS.input.{info.stem}.txt"):
            if (folder / name).is_file():
                return folder / name
    return None


def _graded_files(data: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders that may be sets."""
    for folder in (data, *sorted(path for path in data.iterdir() if path.is_dir())):
        for path in sorted(folder.glob("*.tsv")):
            if path.is_file() and _is_graded(path):
                yield path
        yield from sorted(folder.glob("STS*.input.*.txt"))


def _is_graded(path: Path) -> bool:
    """Whether a file is small, and its first row has a grade and two sentences."""
    if path.stat().st_size > _LARGEST_FILE:
        return False
    with path.open("rb") as file:
        cells = file.readline(_LONGEST_ROW).split(b"\t")
    return len(cells) == 3 and finite(cells[0]) is not None


def _read_set(path: Path) -> GradedPairs:
    """Read a table, or sentences of the STS tasks and their grades in the same folder."""
    if path.suffix == ".tsv":
        return read_graded_pairs(path)
    return read_senteval_pairs(path, path.with_name(path.name.replace(".input.", ".gs.", 1)))


def read_senteval_pairs(sentences: Path, gold: Path) -> GradedPairs:
    """Read the format of the STS tasks, `STS.input.X.txt` and `STS.gs.X.txt`.

    Rows that were never graded are skipped.
    """
    rows = list(read_cells(sentences, 2, 9))
    grades = list(read_lines(str(gold)))
    if len(rows) != len(grades):
        raise TextError(
            f"{sentences} has {len(rows):,} rows, {gold} has {len(grades):,}; give files of the"
            " same task"
        )
    graded = []
    for (number, cells), grade in zip(rows, grades, strict=True):
        if grade.strip():
            graded.append((number, (grade, cells[0], cells[1])))
    return graded_pairs(str(sentences), graded)


def _load(benchmark: str, infos: Iterable[SetInfo]) -> dict[str, GradedPairs]:
    """Load sets from the hub, or a year in one piece."""
    hub = HubData(*ENTRIES[benchmark]["hub"])
    if benchmark in YEARS:
        return {benchmark: _graded(benchmark, hub.load())}
    sets = {}
    for info in infos:
        if info.split:
            subset = info.mteb.partition("/")[2] or None
            rows = hub.load(subset, info.split)
            sets[info.key] = _graded(info.key, rows)
    return sets


def _graded(name: str, dataset: Any) -> GradedPairs:
    columns = zip(dataset["score"], dataset["sentence1"], dataset["sentence2"], strict=True)
    return graded_pairs(name, enumerate(columns, 1))
