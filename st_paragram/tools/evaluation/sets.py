"""Published test sets, from a folder or from the Hugging Face hub at the revisions that mteb takes.

Numbers of pairs are those of the published gold: Agirre et al. 2012-2016 (SemEval task 6, *SEM shared task, tasks 10,
2, 1), Cer et al. 2017 (SemEval task 1, and the STS Benchmark made for it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError, SettingsError, one_line
from st_paragram.tools.evaluation.files import GradedPairs, graded_pairs, read_graded_pairs, read_senteval_pairs

_MSR = "Microsoft Research's own terms: fetch it from there, do not pass it on"
_SMT = "its licence forbids passing it on; the Linguistic Data Consortium gives it out"


@dataclass(frozen=True)
class SetInfo:
    """One data set.

    Args:
        benchmark: "2012" to "2017", or "stsb".
        name: within the benchmark, e.g. "MSRpar", "es-en", "dev".
        pairs: official number of graded pairs.
        stem: how its file is called.
        terms: why it may not be passed on, or nothing.
        languages: of the two sentences.
        mteb: name of the same set as a subset of the hub's data set, if it has one.
    """

    benchmark: str
    name: str
    pairs: int
    stem: str
    terms: str = ""
    languages: tuple[str, str] = ("en", "en")
    mteb: str = ""

    @property
    def key(self) -> str:
        """The name with the benchmark's, e.g. "2012/MSRpar"."""
        return f"{self.benchmark}/{self.name}"


@dataclass(frozen=True)
class Benchmark:
    """The data sets of a year, or of the STS Benchmark.

    Args:
        name: "2012" to "2017", or "stsb".
        sets: in the official order.
        hub: the hub's data set; a year's is the concatenation of its sets (2013 without SMT), their names are lost.
        task: its name in mteb.
        revision: of the data set at the hub, the one that mteb takes: what is added there later is not read.
    """

    name: str
    sets: tuple[SetInfo, ...]
    hub: str
    task: str
    revision: str


def _year(year: str, revision: str, **pairs: int) -> Benchmark:
    sets = []
    for name, number in pairs.items():
        name = name.replace("_", "-")
        terms = {"2013/SMT": _SMT, "2012/MSRpar": _MSR, "2012/MSRvid": _MSR}.get(f"{year}/{name}", "")
        sets.append(SetInfo(year, name, number, name, terms))
    return Benchmark(year, tuple(sets), f"mteb/sts{year[2:]}-sts", f"STS{year[2:]}", revision)


def _track(number: str, first: str, second: str, mteb: str) -> SetInfo:
    name = f"{first}-{second}"
    return SetInfo(
        "2017",
        f"{name}-4b" if number == "4b" else name,
        250,
        f"track{number}.{name}",
        languages=(first, second),
        mteb=mteb,
    )


_ALL = (
    _year(
        "2012",
        "a0d554a64d88156834ff5ae9920b964011b16384",
        MSRpar=750,
        MSRvid=750,
        SMTeuroparl=459,
        OnWN=750,
        SMTnews=399,
    ),
    _year("2013", "7e90230a92c190f1bf69ae9002b8cea547a64cca", FNWN=189, headlines=750, OnWN=561, SMT=750),
    _year(
        "2014",
        "6031580fec1f6af667f0bd2da0a551cf4f0b2375",
        deft_forum=450,
        deft_news=300,
        headlines=750,
        images=750,
        OnWN=750,
        tweet_news=750,
    ),
    _year(
        "2015",
        "ae752c7c21bf194d8b67fd573edf7ae58183cbe3",
        answers_forums=375,
        answers_students=750,
        belief=375,
        headlines=750,
        images=750,
    ),
    _year(
        "2016",
        "4d8694f8f0e0100860b497b999b3dbed754a0513",
        answer_answer=254,
        headlines=249,
        plagiarism=230,
        postediting=244,
        question_question=209,
    ),
    Benchmark(
        "2017",
        (
            _track("1", "ar", "ar", "ar-ar"),
            _track("2", "ar", "en", "en-ar"),
            _track("3", "es", "es", "es-es"),
            _track("4a", "es", "en", "es-en"),
            _track("4b", "es", "en", ""),  # sentences of WMT's quality estimation; mteb has none
            _track("5", "en", "en", "en-en"),
            _track("6", "tr", "en", "en-tr"),
        ),
        "mteb/sts17-crosslingual-sts",
        "STS17",
        "faeb762787bd10488a50c8b5be4a3b82e411949c",
    ),
    Benchmark(
        "stsb",
        (
            SetInfo("stsb", "train", 5749, "en-train", mteb="train"),
            SetInfo("stsb", "dev", 1500, "en-dev", mteb="validation"),
            SetInfo("stsb", "test", 1379, "en-test", mteb="test"),
        ),
        "mteb/stsbenchmark-sts",
        "STSBenchmark",
        "b0fddb56ed78048fa8b90373c8a3cfc37b684831",
    ),
)

BENCHMARKS = {benchmark.name: benchmark for benchmark in _ALL}
YEARS = ("2012", "2013", "2014", "2015", "2016")
SMT = "2013/SMT"
NOT_SCORED = ("stsb/train",)  # only if asked for by its key


def select_sets(only: Sequence[str] = ()) -> tuple[SetInfo, ...]:
    """Sets by the names of benchmarks ("2012", "stsb") and of sets ("2017/en-en", "stsb/dev"), in the official order.

    Without names: everything but the training part of the STS Benchmark.

    Raises:
        SettingsError: a name is unknown; the message lists those there are.
    """
    everything = [info for benchmark in _ALL for info in benchmark.sets]
    for name in only:
        benchmark, _, part = name.partition("/")
        if benchmark not in BENCHMARKS:
            raise SettingsError(f"{name!r} is not an STS benchmark; there are {', '.join(BENCHMARKS)}")
        names = [info.name for info in BENCHMARKS[benchmark].sets]
        if part and part not in names:
            kind = "tracks" if benchmark == "2017" else "sets"
            raise SettingsError(f"{name!r}: STS {benchmark} has the {kind} {', '.join(names)}, no {part!r}")
    wanted = only or tuple(BENCHMARKS)
    return tuple(
        info for info in everything if info.key in wanted or (info.benchmark in wanted and info.key not in NOT_SCORED)
    )


@dataclass(frozen=True)
class StsData:
    """What there is of STS.

    Args:
        sets: key ("2012/MSRpar") -> pairs, in the official order.
        years: year -> pairs, of years from the hub, which does not keep the names of their sets.
        notes: one line for everything missing or odd.
    """

    sets: dict[str, GradedPairs]
    years: dict[str, GradedPairs]
    notes: tuple[str, ...] = ()

    @property
    def everything(self) -> dict[str, GradedPairs]:
        """Sets and years together."""
        return {**self.sets, **self.years}

    @property
    def altered(self) -> list[str]:
        """Sets and years that have not the published number of pairs."""
        sizes = {info.key: info.pairs for benchmark in BENCHMARKS.values() for info in benchmark.sets}
        sizes |= {
            year: sum(n for key, n in sizes.items() if key.startswith(f"{year}/") and key != SMT) for year in YEARS
        }
        return [key for key, pairs in self.everything.items() if len(pairs) != sizes[key]]


def read_sts(folder: str | Path | None, only: Sequence[str] = (), hub: bool = False) -> StsData:
    """Read what there is of the STS benchmarks.

    Args:
        folder: with `sts2012/MSRpar.tsv`, ..., `sts2017/track5.en-en.tsv` and `stsb/en-test.tsv` (a grade and two
            sentences); or with SentEval's folders, `STS12-en-test/STS.input.MSRpar.txt` and `STS.gs.MSRpar.txt`.
        only: names of benchmarks ("2012", "stsb") or sets ("2017/en-en"); all if empty.
        hub: fetch benchmarks of which the folder has nothing from the Hugging Face hub.
    """
    if folder is not None and not Path(folder).is_dir():
        raise EvaluationError(f"{folder}: no such folder; give a folder with sts2012, STS12-en-test or similar")
    sets: dict[str, GradedPairs] = {}
    years: dict[str, GradedPairs] = {}
    notes: list[str] = []
    wanted = select_sets(only)
    for name in dict.fromkeys(info.benchmark for info in wanted):
        infos = [info for info in wanted if info.benchmark == name]
        found = {info.key: pairs for info in infos if folder and (pairs := _read(Path(folder), info))}
        if hub and not found and name in YEARS:
            years[name] = _fetch(name, BENCHMARKS[name], None, "test")
            notes.append(f"{name}: the hub has the year in one piece, so there is nothing by the papers' protocol")
            continue
        if hub and not found:
            splits = {info: (None, info.mteb) if name == "stsb" else (info.mteb, "test") for info in infos if info.mteb}
            found = {info.key: _fetch(info.key, BENCHMARKS[name], *split) for info, split in splits.items()}
        sets |= found
        missing = [info for info in infos if info.key not in found] if found else []
        notes += [f"{info.key} is missing" + (f" ({info.terms})" if info.terms else "") for info in missing]
        notes += [] if found else [f"{name}: nothing under {folder or 'the hub'}"]
    data = StsData(sets, years, tuple(notes))
    if not data.everything:
        expected = "expected e.g. sts2012/MSRpar.tsv, STS12-en-test/STS.input.MSRpar.txt or stsb/en-test.tsv"
        raise EvaluationError(f"{folder or 'the hub'}: nothing of STS {', '.join(only) or 'at all'}; {expected}")
    return data


def _folders(folder: Path, benchmark: str) -> list[Path]:
    names = ["stsb"] if benchmark == "stsb" else [f"sts{benchmark}", f"STS{benchmark[2:]}-en-test"]
    return [folder / name for name in names if (folder / name).is_dir()]


def has_sts(folder: Path, names: Iterable[str]) -> bool:
    """Whether there are files in a folder of one of these years of STS, or of the STS Benchmark ("stsb")."""
    return any(any(place.iterdir()) for name in names for place in _folders(folder, name))


def _read(folder: Path, info: SetInfo) -> GradedPairs | None:
    for place in _folders(folder, info.benchmark):
        if (path := place / f"{info.stem}.tsv").is_file():
            return replace(read_graded_pairs(path), name=info.key)
        sentences, gold = (place / f"STS.{kind}.{info.stem}.txt" for kind in ("input", "gs"))
        if sentences.is_file() and not gold.is_file():
            raise EvaluationError(f"{sentences}: its gold {gold.name} is missing; put it in the same folder")
        if sentences.is_file():
            return replace(read_senteval_pairs(sentences, gold), name=info.key)
    return None


def fetch(name: str, data: str, revision: str, subset: str | None, split: str, columns: Sequence[str]) -> list[Any]:
    """Rows of a data set of the Hugging Face hub, some columns of them."""
    load_dataset = require("datasets", "eval", "data of the hub").load_dataset
    try:
        found: Any = load_dataset(data, subset, split=split, revision=revision)
        return list(zip(*(found[column] for column in columns), strict=True))
    except Exception as error:  # datasets raises what its many parts raise
        reason = one_line(str(error).split("\n")[0])
        raise EvaluationError(
            f"{name}: the hub did not give {data} ({type(error).__name__}: {reason}); try --data with files"
        ) from error


def _fetch(name: str, benchmark: Benchmark, subset: str | None, split: str) -> GradedPairs:
    rows = fetch(name, benchmark.hub, benchmark.revision, subset, split, ("score", "sentence1", "sentence2"))
    return replace(graded_pairs(name, list(enumerate(rows, 1))), name=name)
