"""Which data sets the STS benchmarks consist of: SemEval 2012-2016, the tracks of 2017, the STS Benchmark.

Numbers of pairs are those of the published gold: Agirre et al. 2012-2016 (SemEval task 6, *SEM shared task, tasks 10,
2, 1), Cer et al. 2017 (SemEval task 1, and the STS Benchmark made for it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from st_paragram.errors import SettingsError

_MSR = "Microsoft Research's own terms: fetch it from there, do not pass it on"
_SMT = "its licence forbids passing it on; the Linguistic Data Consortium gives it out"


@dataclass(frozen=True)
class SetInfo:
    """One data set.

    Args:
        benchmark: "2012" to "2017", or "stsb".
        name: within the benchmark, e.g. "MSRpar", "es-en", "dev".
        pairs: official number of graded pairs.
        stems: how its files are called, the first being ours.
        terms: why it may not be passed on, or nothing.
        languages: of the two sentences.
        mteb: name of the same set as a subset of the hub's data set, if it has one.
    """

    benchmark: str
    name: str
    pairs: int
    stems: tuple[str, ...]
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
        stems = (name, f"surprise.{name}") if year == "2012" else (name,)  # two sets came as a surprise then
        terms = {"2013/SMT": _SMT, "2012/MSRpar": _MSR, "2012/MSRvid": _MSR}.get(f"{year}/{name}", "")
        sets.append(SetInfo(year, name, number, stems, terms))
    return Benchmark(year, tuple(sets), f"mteb/sts{year[2:]}-sts", f"STS{year[2:]}", revision)


def _track(number: str, first: str, second: str, mteb: str) -> SetInfo:
    name = f"{first}-{second}"
    stem = f"track{number}.{name}"
    stems = (stem, f"{stem}.wmt") if number == "4b" else (stem,)
    return SetInfo("2017", f"{name}-4b" if number == "4b" else name, 250, stems, languages=(first, second), mteb=mteb)


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
            SetInfo("stsb", "train", 5749, ("en-train", "sts-train"), mteb="train"),
            SetInfo("stsb", "dev", 1500, ("en-dev", "sts-dev"), mteb="validation"),
            SetInfo("stsb", "test", 1379, ("en-test", "sts-test"), mteb="test"),
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
