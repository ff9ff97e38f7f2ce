"""STS 2012-2017 and the STS Benchmark, by three protocols.

The papers' (Wieting et al.): Pearson per data set, mean over the sets of a year, mean over the years. Table 1 of ACL
2019 has the mean over all sets of all years instead, which is another figure: years have from 4 to 6 sets.
Sentence-BERT's (Reimers & Gurevych, EMNLP 2019; so too SimCSE): Spearman over all pairs of a year, without SMT.
mteb's: Spearman over the pairs of a task; its STS12-STS16 are the same years without SMT.
On the STS Benchmark also mUSE's (Yang et al., ACL 2020): Pearson with -arccos of the cosine as similarity.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.scores import Floats, Score, correlation, cosines, pearson, resampled, score_of
from st_paragram.tools.evaluation.sets import SETS, SMT, YEARS, StsData, has_sts, read_sts

AVERAGE, ALL_SETS, WITHOUT = "average", "all sets", " without SMT"
PEARSON, SPEARMAN, ANGLE = "Pearson", "Spearman", "Pearson of the angle"
#: Measures of means: the papers' protocol, Sentence-BERT's and mteb's.
MEAN_PEARSON, POOLED_SPEARMAN, MTEB_SPEARMAN = "mean Pearson", "pooled Spearman", "mteb Spearman"

_INTERVALS = "[95 % interval of Pearson]"


def has_data(data: Path, name: str) -> bool:
    """Whether a folder of evaluation data has files of a year of STS, or of the STS Benchmark."""
    return has_sts(data, SETS)


def read(request: Request) -> StsData:
    """Read what a folder, or the Hugging Face hub, has of STS."""
    return read_sts(request.data, request.sets, request.hub)


def score(name: str, model: TextEncoder, data: StsData) -> Iterator[Score]:
    """All figures of a model."""
    return sts_scores(name, {key: cosines(model, pairs) for key, pairs in data.everything.items()}, data)


def sts_scores(model: str, found: Mapping[str, Floats], data: StsData) -> Iterator[Score]:
    """All figures from key of a set -> cosines; those that models are compared by have resamples."""
    grades = {key: np.array(pairs.grades) for key, pairs in data.everything.items()}
    samples: dict[str, Floats] = {}
    mteb: dict[str, float] = {}
    for key, pairs in data.sets.items():
        samples[key] = _resampled_pearson(key, found[key], grades[key])
        own = score_of(model, "sts", key, PEARSON, samples[key], len(pairs))
        yield replace(own, draws=None) if key[:4] in YEARS else own
        spearman = correlation(found[key], grades[key]).spearman
        yield Score(model, "sts", key, SPEARMAN, spearman, len(pairs))
        if task := mteb_name(key):
            mteb[task] = spearman
        if key.startswith("stsb/"):
            angles = -np.arccos(np.clip(found[key], -1, 1))
            yield Score(model, "sts", key, ANGLE, correlation(angles, grades[key]).pearson, len(pairs))
    for label, figures in papers_means(samples).items():
        yield score_of(model, "sts", label, MEAN_PEARSON, figures, 0)
    pooled: dict[str, float] = {}
    for label, keys in sorted([*year_sets(data.sets, smt=False).items(), *((year, [year]) for year in data.years)]):
        cosines_of, grades_of = (np.concatenate([of[key] for key in keys]) for of in (found, grades))
        pooled[label] = correlation(cosines_of, grades_of).spearman
    years = {f"STS{year[2:]}": pooled[year] for year in YEARS if year in pooled}
    if len(years) == len(YEARS):
        pooled[AVERAGE] = years["STS12-16"] = float(np.mean(list(pooled.values())))
    for measure, values in ((POOLED_SPEARMAN, pooled), (MTEB_SPEARMAN, {**years, **mteb})):
        for label, value in values.items():
            yield Score(model, "sts", label, measure, value)


def _resampled_pearson(key: str, found: Floats, grades: Floats) -> Floats:
    return resampled(lambda rows: pearson(found[rows], grades[rows]), len(grades), (0, zlib.crc32(key.encode())))


def year_sets(sets: Iterable[str], smt: bool) -> dict[str, list[str]]:
    """Label of a year -> keys of its sets that there are; the label names those that are missing.

    With `smt` SMT belongs to 2013 and may be missing; otherwise it is left out.
    """
    here, found = set(sets), dict[str, list[str]]()
    for year in YEARS:
        wanted = [info.key for info in SETS[year] if smt or info.key != SMT]
        missing = [key.partition("/")[2] for key in wanted if key not in here]
        if len(missing) < len(wanted):
            label = f"{year} without {', '.join(missing)}" if missing else year
            found[label] = [key for key in wanted if key in here]
    return found


def papers_means(sets: Mapping[str, Floats]) -> dict[str, Floats]:
    """Means of the papers' protocol, from key of a set -> its figure and those of resamples, (1 + R,).

    A year of which sets are missing has a label that names them ("2013 without SMT"). Averages over the years and over
    all sets are of complete years alone, but both with and without SMT.
    """
    groups = year_sets(sets, smt=True)
    if SMT[:4] in groups:
        groups[f"{SMT[:4]}{WITHOUT}"] = [key for key in groups[SMT[:4]] if key != SMT]
    means = {label: np.mean([sets[key] for key in keys], axis=0) for label, keys in sorted(groups.items())}
    averages = dict[str, Floats]()
    for suffix in ("", WITHOUT):
        years = [f"{year}{suffix}" if year == SMT[:4] else year for year in YEARS]
        if means.keys() >= set(years):
            averages[f"{AVERAGE}{suffix}"] = np.mean([means[year] for year in years], axis=0)
            averages[f"{ALL_SETS}{suffix}"] = np.mean([sets[key] for year in years for key in groups[year]], axis=0)
    return means | dict(sorted(averages.items(), key=lambda item: item[0].startswith(ALL_SETS)))


def mteb_name(key: str) -> str:
    """The name in mteb of a track or of the STS Benchmark's test set; empty if it has none."""
    benchmark = key.partition("/")[0]
    subset = next((info.mteb for info in SETS[benchmark] if info.key == key), "")
    if benchmark == "2017" and subset:
        return f"STS17/{subset}"
    return "STSBenchmark" if key == "stsb/test" else ""


def tables(scores: list[Score], data: StsData) -> Iterator[str]:
    """A table for each year and protocol, comparisons, and notes, part by part; each heading names the protocol."""
    plain = [score for score in scores if not score.against]
    of = {measure: [s for s in plain if s.measure == measure] for measure in (MEAN_PEARSON, POOLED_SPEARMAN, ANGLE)}
    altered = {key.partition("/")[0] for key in data.altered}
    known = "" if altered.intersection(YEARS) else "sts"
    for year in YEARS:
        own = [s for s in plain if s.set.startswith(year) and s.measure in (PEARSON, MEAN_PEARSON)]
        title = f"STS {year}, the papers' protocol: Pearson x 100 {_INTERVALS}, mean over the sets"
        yield from report.section(title, own, _set_label)
    title = "the papers' protocol: Pearson x 100 per set, mean over a year, mean over the years or all sets"
    note = (
        "The average is the mean over the years, as in the papers of 2020 and 2022; the mean over all sets is what ACL "
        "2019 gives. Rows marked as published are the papers' own figures, which have SMT in 2013."
    )
    columns = [*sorted({*YEARS, *(s.set for s in of[MEAN_PEARSON] if s.set[:4] in YEARS)}), AVERAGE, ALL_SETS]
    yield from report.section(f"STS 2012-2016, {title}", of[MEAN_PEARSON], known=known, note=note, headings=columns)
    title = "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over a year's concatenation, without SMT"
    yield from report.section(title, of[POOLED_SPEARMAN], known=known and "sts-pooled", headings=[*YEARS, AVERAGE])
    mteb = [score for score in plain if score.measure == MTEB_SPEARMAN]
    title = "mteb's protocol: Spearman x 100 of cosines over all pairs of a task"
    yield from report.section(title, mteb, known="" if altered else "mteb")
    for name, title, known, note in (
        (
            "2017",
            "STS 2017",
            "sts-2017",
            "The column es-en is track 4a; es-en-4b is track 4b, with sentences from WMT.",
        ),
        ("stsb", "STS Benchmark", "", ""),
    ):
        own = [s for s in plain if s.set.startswith(f"{name}/") and s.measure in (PEARSON, SPEARMAN)]
        title = f"{title}, the papers' protocol: Pearson\\Spearman x 100 {_INTERVALS}"
        yield from report.section(title, own, _set_label, "" if name in altered else known, note)
    title = "STS Benchmark, mUSE's similarity: Pearson x 100 of -arccos of the cosine"
    yield from report.section(title, of[ANGLE], _set_label, "" if "stsb" in altered else "sts-angle")
    yield from report.differences(scores)
    if altered:
        yield report.not_comparable(data.altered)
    yield from (f"- {note}" for note in data.notes)


def _set_label(score: Score) -> str:
    return f"{score.set.partition('/')[2]} ({score.items})" if "/" in score.set else f"mean {score.set}"
