"""The sets of STS, from a folder or from the Hugging Face hub at the revisions that mteb takes.

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

_TERMS = dict.fromkeys(("2012/MSRpar", "2012/MSRvid"), "fetch it from Microsoft Research, do not pass it on")
_TERMS["2013/SMT"] = "its licence forbids passing it on; the Linguistic Data Consortium gives it out"


@dataclass(frozen=True)
class SetInfo:
    """One data set."""

    key: str  # benchmark and name, "2012/MSRpar", "2017/es-en" or "stsb/dev"
    pairs: int  # official number of graded pairs
    stem: str  # of its file
    mteb: str = ""  # the subset (2017) or the split (STS Benchmark) of the hub's data set, if it has this set alone


_PAIRS = {
    "2012": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    "2013": {"FNWN": 189, "headlines": 750, "OnWN": 561, "SMT": 750},
    "2014": {"deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "OnWN": 750, "tweet-news": 750},
    "2015": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "2016": {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
}
#: Benchmark -> its sets, in the official order.
SETS = {year: [SetInfo(f"{year}/{name}", pairs, name) for name, pairs in of.items()] for year, of in _PAIRS.items()}
SETS["2017"] = [
    SetInfo("2017/ar-ar", 250, "track1.ar-ar", "ar-ar"),
    SetInfo("2017/ar-en", 250, "track2.ar-en", "en-ar"),
    SetInfo("2017/es-es", 250, "track3.es-es", "es-es"),
    SetInfo("2017/es-en", 250, "track4a.es-en", "es-en"),
    SetInfo("2017/es-en-4b", 250, "track4b.es-en"),  # sentences of WMT's quality estimation; mteb has none
    SetInfo("2017/en-en", 250, "track5.en-en", "en-en"),
    SetInfo("2017/tr-en", 250, "track6.tr-en", "en-tr"),
]
SETS["stsb"] = [
    SetInfo("stsb/train", 5749, "en-train", "train"),
    SetInfo("stsb/dev", 1500, "en-dev", "validation"),
    SetInfo("stsb/test", 1379, "en-test", "test"),
]
YEARS = tuple(_PAIRS)
SMT = "2013/SMT"
NOT_SCORED = "stsb/train"  # only if asked for by its key
#: Benchmark -> the hub's data set and its revision; a year's is one piece, in which the sets are not named.
_HUB = {
    "2012": ("mteb/sts12-sts", "a0d554a64d88156834ff5ae9920b964011b16384"),
    "2013": ("mteb/sts13-sts", "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    "2014": ("mteb/sts14-sts", "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    "2015": ("mteb/sts15-sts", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    "2016": ("mteb/sts16-sts", "4d8694f8f0e0100860b497b999b3dbed754a0513"),
    "2017": ("mteb/sts17-crosslingual-sts", "faeb762787bd10488a50c8b5be4a3b82e411949c"),
    "stsb": ("mteb/stsbenchmark-sts", "b0fddb56ed78048fa8b90373c8a3cfc37b684831"),
}


def select_sets(only: Sequence[str] = ()) -> list[SetInfo]:
    """Sets by the names of benchmarks ("2012", "stsb") and of sets ("2017/en-en", "stsb/dev"), in the official order.

    Without names: everything but the training part of the STS Benchmark.
    """
    for name in only:
        benchmark, _, part = name.partition("/")
        if benchmark not in SETS:
            raise SettingsError(f"{name!r} is not an STS benchmark; there are {', '.join(SETS)}")
        if part and name not in (keys := [info.key for info in SETS[benchmark]]):
            raise SettingsError(f"{name!r} is not a set of STS {benchmark}; there are {', '.join(keys)}")
    wanted = only or tuple(SETS)
    return [
        info
        for benchmark, sets in SETS.items()
        for info in sets
        if info.key in wanted or (benchmark in wanted and info.key != NOT_SCORED)
    ]


@dataclass(frozen=True)
class StsData:
    """What there is of STS."""

    sets: dict[str, GradedPairs]  # key ("2012/MSRpar") -> pairs, in the official order
    years: dict[str, GradedPairs]  # of years from the hub, which does not keep the names of their sets
    notes: tuple[str, ...] = ()  # one line for everything missing

    @property
    def everything(self) -> dict[str, GradedPairs]:
        """Sets and years together."""
        return {**self.sets, **self.years}

    @property
    def altered(self) -> list[str]:
        """Sets and years that have not the published number of pairs."""
        sizes = {info.key: info.pairs for sets in SETS.values() for info in sets}
        sizes |= {year: sum(info.pairs for info in SETS[year] if info.key != SMT) for year in YEARS}
        return [key for key, pairs in self.everything.items() if len(pairs) != sizes[key]]


def read_sts(folder: Path | None, only: Sequence[str] = (), hub: bool = False) -> StsData:
    """Read what there is of the STS benchmarks and sets named, all if none is.

    A folder has `sts2012/MSRpar.tsv`, ..., `sts2017/track5.en-en.tsv` and `stsb/en-test.tsv` (a grade and two
    sentences), or SentEval's folders, `STS12-en-test/STS.input.MSRpar.txt` and `STS.gs.MSRpar.txt`. With `hub`,
    benchmarks of which the folder has nothing come from the Hugging Face hub.
    """
    sets: dict[str, GradedPairs] = {}
    years: dict[str, GradedPairs] = {}
    notes: list[str] = []
    wanted = select_sets(only)
    for name in dict.fromkeys(info.key.partition("/")[0] for info in wanted):
        infos = [info for info in wanted if info.key.startswith(f"{name}/")]
        found = {info.key: pairs for info in infos if folder and (pairs := _read(folder, name, info))}
        if hub and not found and name in YEARS:
            years[name] = _fetch(name, name, None, "test")
            notes.append(f"{name}: the hub has the year in one piece, so there is nothing by the papers' protocol")
            continue
        if hub and not found:
            places = {info.key: (None, info.mteb) if name == "stsb" else (info.mteb, "test") for info in infos}
            found = {key: _fetch(key, name, *place) for key, place in places.items() if all(place) or name == "stsb"}
        sets |= found
        missing = [info.key for info in infos if info.key not in found] if found else []
        notes += [f"{key} is missing" + (f" ({_TERMS[key]})" if key in _TERMS else "") for key in missing]
        notes += [] if found else [f"{name}: nothing under {folder or 'the hub'}"]
    if not (sets or years):
        expected = "expected e.g. sts2012/MSRpar.tsv, STS12-en-test/STS.input.MSRpar.txt or stsb/en-test.tsv"
        raise EvaluationError(f"{folder or 'the hub'}: nothing of STS {', '.join(only) or 'at all'}; {expected}")
    return StsData(sets, years, tuple(notes))


def _folders(folder: Path, benchmark: str) -> list[Path]:
    names = ["stsb"] if benchmark == "stsb" else [f"sts{benchmark}", f"STS{benchmark[2:]}-en-test"]
    return [folder / name for name in names if (folder / name).is_dir()]


def has_sts(folder: Path, names: Iterable[str]) -> bool:
    """Whether there are files in a folder of one of these years of STS, or of the STS Benchmark ("stsb")."""
    return any(any(place.iterdir()) for name in names for place in _folders(folder, name))


def _read(folder: Path, benchmark: str, info: SetInfo) -> GradedPairs | None:
    for place in _folders(folder, benchmark):
        if (path := place / f"{info.stem}.tsv").is_file():
            return replace(read_graded_pairs(path), name=info.key)
        sentences, gold = (place / f"STS.{kind}.{info.stem}.txt" for kind in ("input", "gs"))
        if sentences.is_file():
            return replace(read_senteval_pairs(sentences, gold), name=info.key)
    return None


def fetch(name: str, data: str, revision: str, subset: str | None, split: str) -> Any:  # noqa: ANN401 - a Dataset
    """A data set of the Hugging Face hub."""
    load_dataset = require("datasets", "eval", "data of the hub").load_dataset
    try:
        return load_dataset(data, subset, split=split, revision=revision)
    except Exception as error:  # datasets raises what its many parts raise
        reason = one_line(str(error).split("\n")[0])
        seen = f"{name}: the hub did not give {data} ({type(error).__name__}: {reason})"
        raise EvaluationError(f"{seen}; try --data with files") from error


def _fetch(name: str, benchmark: str, subset: str | None, split: str) -> GradedPairs:
    found = fetch(name, *_HUB[benchmark], subset, split)
    rows = zip(*(found[column] for column in ("score", "sentence1", "sentence2")), strict=True)
    return replace(graded_pairs(name, list(enumerate(rows, 1))), name=name)
