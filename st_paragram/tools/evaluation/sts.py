"""STS 2012-2017 and the STS Benchmark, by four protocols.

The papers' (Wieting et al.): Pearson per data set, averaged over the sets of a year, then over the
years. Table 1 of ACL 2019 averages over all sets of all years instead, with a different result,
since years have 4 to 6 sets. Sentence-BERT's (Reimers & Gurevych, EMNLP 2019; also SimCSE):
Spearman over all pairs of a year, without SMT. mteb's: Spearman over the pairs of a task; its
STS12-STS16 are the same years without SMT. mUSE's (Yang et al., ACL 2020), on the STS Benchmark:
Pearson with -arccos of the cosine as similarity.

Sets are read from a folder, or from the Hugging Face hub at mteb's revisions. Numbers of pairs are
those of the published gold: Agirre et al. 2012-2016 (SemEval task 6, *SEM shared task, tasks 10, 2,
1), Cer et al. 2017.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    fetch,
    graded_pairs,
    read_graded_pairs,
    read_senteval_pairs,
)
from st_paragram.tools.evaluation.scores import (
    Floats,
    Score,
    correlation,
    cosines,
    resampled_pearson,
    score_of,
)

AVERAGE, ALL_SETS, WITHOUT = "average", "all sets", " without SMT"
PEARSON, SPEARMAN, ANGLE = "Pearson", "Spearman", "Pearson of the angle"
#: Measures of means: the papers' protocol, Sentence-BERT's and mteb's.
MEAN_PEARSON, POOLED_SPEARMAN, MTEB_SPEARMAN = "mean Pearson", "pooled Spearman", "mteb Spearman"

_INTERVALS = "[95% interval of Pearson]"
_NOTE = (
    "The average is the mean over the years, as in the papers of 2020 and 2022. ACL 2019 has the"
    " mean over all sets. Rows marked as published are the papers' figures, which include SMT in"
    " 2013."
)
_TRACKS = "The column es-en is track 4a; es-en-4b is track 4b, with sentences from WMT."


@dataclass(frozen=True)
class SetInfo:
    """One data set."""

    key: str  # benchmark and name, "2012/MSRpar", "2017/es-en" or "stsb/dev"
    pairs: int  # official number of graded pairs
    stem: str  # stem of the file name
    mteb: str = ""  # mteb's name of the set, if mteb scores it separately
    split: str = "test"  # split of the data set on the hub; empty if the set is not there


_PAIRS = {
    "2012": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    "2013": {"FNWN": 189, "headlines": 750, "OnWN": 561, "SMT": 750},
    "2014": {
        "deft-forum": 450,
        "deft-news": 300,
        "headlines": 750,
        "images": 750,
        "OnWN": 750,
        "tweet-news": 750,
    },
    "2015": {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
    "2016": {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
}
#: Benchmark -> its sets, in the official order.
SETS = {
    year: [SetInfo(f"{year}/{name}", pairs, name) for name, pairs in of.items()]
    for year, of in _PAIRS.items()
}
SETS["2017"] = [
    SetInfo("2017/ar-ar", 250, "track1.ar-ar", "STS17/ar-ar"),
    SetInfo("2017/ar-en", 250, "track2.ar-en", "STS17/en-ar"),
    SetInfo("2017/es-es", 250, "track3.es-es", "STS17/es-es"),
    SetInfo("2017/es-en", 250, "track4a.es-en", "STS17/es-en"),
    # sentences from WMT's quality estimation; not in mteb
    SetInfo("2017/es-en-4b", 250, "track4b.es-en", split=""),
    SetInfo("2017/en-en", 250, "track5.en-en", "STS17/en-en"),
    SetInfo("2017/tr-en", 250, "track6.tr-en", "STS17/en-tr"),
]
SETS["stsb"] = [
    SetInfo("stsb/train", 5749, "en-train", split="train"),
    SetInfo("stsb/dev", 1500, "en-dev", split="validation"),
    SetInfo("stsb/test", 1379, "en-test", "STSBenchmark"),
]
INFOS = {info.key: info for sets in SETS.values() for info in sets}
YEARS = tuple(_PAIRS)
SMT = "2013/SMT"
NOT_SCORED = "stsb/train"  # unless requested by its key
#: Benchmark -> data set on the hub and its revision; the sets of a year are combined there, without
#: their names.
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
    """Return sets by names of benchmarks ("2012", "stsb") and sets ("2017/en-en", "stsb/dev"), in
    the official order.

    Without names, return all sets except the training part of the STS Benchmark.
    """
    for name in only:
        benchmark, _, part = name.partition("/")
        if benchmark not in SETS:
            raise SettingsError(f"{name!r} is not an STS benchmark; choose from {', '.join(SETS)}")
        if part and name not in (keys := [info.key for info in SETS[benchmark]]):
            raise SettingsError(
                f"{name!r} is not a set of STS {benchmark}; choose from {', '.join(keys)}"
            )
    wanted = only or tuple(SETS)
    whole = [key for key in INFOS if key.partition("/")[0] in wanted and key != NOT_SCORED]
    return [info for key, info in INFOS.items() if key in wanted or key in whole]


@dataclass(frozen=True)
class StsData:
    """The available STS sets."""

    #: Key ("2012/MSRpar") -> pairs, in the official order; a year from the hub, without names of
    #: sets, is "2012".
    sets: dict[str, GradedPairs]
    notes: tuple[str, ...] = ()  # one line for each missing item

    @property
    def altered(self) -> list[str]:
        """Return the sets and years that do not have the published number of pairs."""
        sizes = {key: info.pairs for key, info in INFOS.items()}
        sizes |= {year: sum(info.pairs for info in SETS[year] if info.key != SMT) for year in YEARS}
        return [key for key, pairs in self.sets.items() if len(pairs) != sizes[key]]


def read(request: Request) -> StsData:
    """Read the requested STS benchmarks and sets (default: all) from a folder or from the hub.

    A folder has `sts2012/MSRpar.tsv`, ..., `sts2017/track5.en-en.tsv` and `stsb/en-test.tsv` (a
    grade and two sentences), or SentEval's folders, `STS12-en-test/STS.input.MSRpar.txt` and
    `STS.gs.MSRpar.txt`. If the request allows the hub, benchmarks that are missing from the folder
    are loaded from the hub.
    """
    folder, hub, only = request.data, request.hub, request.sets
    sets: dict[str, GradedPairs] = {}
    notes: list[str] = []
    wanted = select_sets(only)
    for name in dict.fromkeys(info.key.partition("/")[0] for info in wanted):
        infos = [info for info in wanted if info.key.startswith(f"{name}/")]
        available = {
            info.key: pairs for info in infos if folder and (pairs := _read(folder, name, info))
        }
        if hub and not available:
            if name in YEARS:
                sets[name] = _fetch(name, name, None, "test")
                notes.append(
                    f"{name}: the hub combines the sets of a year, so the papers' protocol is not"
                    " available"
                )
                continue
            places = {
                info.key: (info.mteb.partition("/")[2] or None, info.split)
                for info in infos
                if info.split
            }
            available = {key: _fetch(key, name, *place) for key, place in places.items()}
        sets |= available
        missing = [f"{info.key} is missing" for info in infos if info.key not in available]
        notes += missing if available else [f"{name}: no data in {folder or 'the hub'}"]
    if not sets:
        expected = (
            "name files like sts2012/MSRpar.tsv, STS12-en-test/STS.input.MSRpar.txt or"
            " stsb/en-test.tsv"
        )
        raise EvaluationError(
            f"{folder or 'the hub'}: no STS data for {', '.join(only) or 'any set'}; {expected}"
        )
    return StsData(sets, tuple(notes))


def sts_folders(folder: Path, benchmarks: Iterable[str]) -> list[Path]:
    """Return the nonempty folders of some benchmarks in `SETS`."""
    names = [name for year in benchmarks for name in (f"sts{year}", f"STS{year[2:]}-en-test", year)]
    return [place for name in names if (place := folder / name).is_dir() and any(place.iterdir())]


def _read(folder: Path, benchmark: str, info: SetInfo) -> GradedPairs | None:
    for place in sts_folders(folder, [benchmark]):
        if (path := place / f"{info.stem}.tsv").is_file():
            return read_graded_pairs(path)
        sentences, gold = (place / f"STS.{kind}.{info.stem}.txt" for kind in ("input", "gs"))
        if sentences.is_file():
            return read_senteval_pairs(sentences, gold)
    return None


def _fetch(name: str, benchmark: str, subset: str | None, split: str) -> GradedPairs:
    dataset = fetch(name, *_HUB[benchmark], subset, split)
    rows = zip(*(dataset[column] for column in ("score", "sentence1", "sentence2")), strict=True)
    return graded_pairs(name, list(enumerate(rows, 1)))


def find(data: Path, name: str) -> list[Path]:
    """Return the subfolders of evaluation data that have STS files."""
    return sts_folders(data, SETS)


def score(name: str, model: TextEncoder, data: StsData) -> Iterator[Score]:
    """Yield all scores of a model; the scores used to compare models have resamples."""
    similarities = {key: cosines(model, pairs) for key, pairs in data.sets.items()}
    grades = {key: np.array(pairs.grades) for key, pairs in data.sets.items()}
    samples: dict[str, Floats] = {}
    mteb: dict[str, float] = {}
    for key, pairs in data.sets.items():
        if key in YEARS:
            continue
        samples[key] = resampled_pearson(
            similarities[key], grades[key], (0, zlib.crc32(key.encode()))
        )
        pearson = score_of(name, "sts", key, PEARSON, samples[key], len(pairs))
        yield replace(pearson, draws=None) if key[:4] in YEARS else pearson
        spearman = correlation(similarities[key], grades[key]).spearman
        yield Score(name, "sts", key, SPEARMAN, spearman, len(pairs))
        if INFOS[key].mteb:
            mteb[INFOS[key].mteb] = spearman
        if key.startswith("stsb/"):
            angles = -np.arccos(np.clip(similarities[key], -1, 1))
            yield Score(
                name, "sts", key, ANGLE, correlation(angles, grades[key]).pearson, len(pairs)
            )
    for label, figures in papers_means(samples).items():
        yield score_of(name, "sts", label, MEAN_PEARSON, figures, 0)
    pooled: dict[str, float] = {}
    whole = {year: [year] for year in YEARS if year in data.sets}
    for label, keys in sorted((year_sets(data.sets, smt=False) | whole).items()):
        sides = (np.concatenate([values[key] for key in keys]) for values in (similarities, grades))
        pooled[label] = correlation(*sides).spearman
    years = {f"STS{year[2:]}": pooled[year] for year in YEARS if year in pooled}
    if len(years) == len(YEARS):
        pooled[AVERAGE] = years["STS12-16"] = float(np.mean(list(pooled.values())))
    for measure, figures_of in ((POOLED_SPEARMAN, pooled), (MTEB_SPEARMAN, {**years, **mteb})):
        for label, value in figures_of.items():
            yield Score(name, "sts", label, measure, value)


def year_sets(sets: Iterable[str], smt: bool) -> dict[str, list[str]]:
    """Return label of a year -> keys of its available sets; the label names the missing sets.

    With `smt`, SMT belongs to 2013 and may be missing; otherwise it is ignored.
    """
    available, keys_by_label = set(sets), dict[str, list[str]]()
    for year in YEARS:
        wanted = [info.key for info in SETS[year] if smt or info.key != SMT]
        missing = [key.partition("/")[2] for key in wanted if key not in available]
        if len(missing) < len(wanted):
            label = f"{year} without {', '.join(missing)}" if missing else year
            keys_by_label[label] = [key for key in wanted if key in available]
    return keys_by_label


def papers_means(sets: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the means of the papers' protocol, from key of a set -> its figure and those of
    resamples, (1 + R,).

    The label of a year with missing sets names them ("2013 without SMT"). Averages over the years
    and over all sets need complete years, and are computed both with and without SMT.
    """
    groups = year_sets(sets, smt=True)
    if SMT[:4] in groups:
        groups[f"{SMT[:4]}{WITHOUT}"] = [key for key in groups[SMT[:4]] if key != SMT]
    means = {
        label: np.mean([sets[key] for key in keys], axis=0)
        for label, keys in sorted(groups.items())
    }
    averages, set_means = dict[str, Floats](), dict[str, Floats]()
    for suffix in ("", WITHOUT):
        years = [f"{year}{suffix}" if year == SMT[:4] else year for year in YEARS]
        if means.keys() >= set(years):
            averages[f"{AVERAGE}{suffix}"] = np.mean([means[year] for year in years], axis=0)
            set_means[f"{ALL_SETS}{suffix}"] = np.mean(
                [sets[key] for year in years for key in groups[year]], axis=0
            )
    return means | averages | set_means


def tables(scores: list[Score], data: StsData) -> Iterator[str]:
    """Yield a table for each year and protocol, comparisons, and notes; each heading names the
    protocol.
    """

    def of(sets: str, *measures: str) -> list[Score]:
        return [
            s for s in scores if not s.against and s.set.startswith(sets) and s.measure in measures
        ]

    altered = {key.partition("/")[0] for key in data.altered}
    known = "" if altered.intersection(YEARS) else "sts"
    for year in YEARS:
        title = f"STS {year}, the papers' protocol: Pearson x 100 {_INTERVALS}, mean over the sets"
        yield from report.section(title, of(year, PEARSON, MEAN_PEARSON), column=_set_label)
    means = of("", MEAN_PEARSON)
    title = (
        "the papers' protocol: Pearson x 100 per set, mean over a year, mean over the years or all"
        " sets"
    )
    columns = [*sorted({*YEARS, *(s.set for s in means if s.set[:4] in YEARS)}), AVERAGE, ALL_SETS]
    yield from report.section(
        f"STS 2012-2016, {title}", means, _NOTE, known=known, headings=columns
    )
    title = (
        "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over all pairs of a year,"
        " without SMT"
    )
    pooled = of("", POOLED_SPEARMAN)
    yield from report.section(
        title, pooled, known=known and "sts-pooled", headings=[*YEARS, AVERAGE]
    )
    title = "mteb's protocol: Spearman x 100 of cosines over all pairs of a task"
    yield from report.section(title, of("", MTEB_SPEARMAN), known="" if altered else "mteb")
    title = f"the papers' protocol: Pearson\\Spearman x 100 {_INTERVALS}"
    tracks, known = of("2017/", PEARSON, SPEARMAN), "" if "2017" in altered else "sts-2017"
    yield from report.section(f"STS 2017, {title}", tracks, _TRACKS, column=_set_label, known=known)
    yield from report.section(
        f"STS Benchmark, {title}", of("stsb/", PEARSON, SPEARMAN), column=_set_label
    )
    title = "STS Benchmark, mUSE's similarity: Pearson x 100 of -arccos of the cosine"
    known = "" if "stsb" in altered else "sts-angle"
    yield from report.section(title, of("", ANGLE), column=_set_label, known=known)
    yield from report.differences(scores)
    if altered:
        yield report.not_comparable(data.altered)
    yield from (f"- {note}" for note in data.notes)


def _set_label(score: Score) -> str:
    return (
        f"{score.set.partition('/')[2]} ({score.items})"
        if "/" in score.set
        else f"mean {score.set}"
    )
