"""STS 2012-2017 and the STS Benchmark, by four protocols.

- The papers' (Wieting et al., EMNLP 2020 and 2022): Pearson per data set, averaged over the sets of
  a year, then over the years. Table 1 of ACL 2019 averages over all sets of all years instead, with
  a different result, since years have 4 to 6 sets.
- Sentence-BERT's (Reimers and Gurevych, EMNLP 2019; also SimCSE): Spearman over all pairs of a
  year, without SMT.
- mteb's: Spearman over the pairs of a task; its STS12-STS16 are the same years without SMT.
- mUSE's (Yang et al., ACL 2020), on the STS Benchmark: Pearson with -arccos of the cosine as
  similarity.

`sts_sets` reads the sets.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from st_paragram.core.arrays import Floats
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.bootstrap import resampled_pearson, with_interval
from st_paragram.tools.evaluation.scores import Score, correlation, cosines
from st_paragram.tools.evaluation.sts_sets import (
    INFOS,
    SETS,
    SMT,
    YEARS,
    StsData,
    find,
    read,
)

__all__ = ["YEARS", "find", "papers_means", "read", "score", "tables"]

YEAR_OF_SMT = "2013"
AVERAGE = "average"
ALL_SETS = "all sets"
WITHOUT_SMT = " without SMT"
PEARSON = "Pearson"
SPEARMAN = "Spearman"
ANGLE = "Pearson of the angle"
#: Measures of means: the papers' protocol, Sentence-BERT's and mteb's.
MEAN_PEARSON = "mean Pearson"
POOLED_SPEARMAN = "pooled Spearman"
MTEB_SPEARMAN = "mteb Spearman"

_INTERVALS = "[95% interval of Pearson]"
_NOTE = (
    "The average is the mean over the years, as in the papers of 2020 and 2022. ACL 2019 has the"
    " mean over all sets. Rows marked as published are the papers' figures, which include SMT in"
    " 2013."
)
_TRACKS = "The column es-en is track 4a; es-en-4b is track 4b, with sentences from WMT."


@dataclass(frozen=True)
class SetScores:
    """The cosines of a model on one set."""

    key: str  # "2012/MSRpar"; "2012" for a year in one piece
    cosines: Floats  # (n,)
    grades: Floats  # (n,)

    @property
    def spearman(self) -> float:
        """Spearman's correlation of cosines and grades."""
        return correlation(self.cosines, self.grades).spearman


def score(name: str, model: TextEncoder, data: StsData) -> Iterator[Score]:
    """Yield all scores of a model; the scores used to compare models have resamples."""
    sets: dict[str, SetScores] = {}
    figures: dict[str, Floats] = {}
    for key, pairs in data.sets.items():
        sets[key] = SetScores(key, cosines(model, pairs), np.array(pairs.grades))
        if key not in YEARS:
            seed = (0, zlib.crc32(key.encode()))
            figures[key] = resampled_pearson(sets[key].cosines, sets[key].grades, seed)
            yield from _scores_of_set(name, sets[key], figures[key])
    for label, mean in papers_means(figures).items():
        yield with_interval(Score(name, "sts", label, measure=MEAN_PEARSON), mean)
    pooled = pooled_spearman(sets)
    for label, value in pooled.items():
        yield Score(name, "sts", label, measure=POOLED_SPEARMAN, value=value)
    for task, value in mteb_spearman(sets, pooled).items():
        yield Score(name, "sts", task, measure=MTEB_SPEARMAN, value=value)


def _scores_of_set(name: str, scored: SetScores, figures: Floats) -> Iterator[Score]:
    """Yield Pearson and Spearman of a set and, for the STS Benchmark, mUSE's measure."""
    plain = Score(name, "sts", scored.key, measure=PEARSON, items=len(scored.grades))
    pearson = with_interval(plain, figures)
    if INFOS[scored.key].benchmark in YEARS:
        pearson = replace(pearson, draws=None)  # models are compared on the means
    yield pearson
    yield replace(plain, measure=SPEARMAN, value=scored.spearman)
    if INFOS[scored.key].benchmark == "stsb":
        angles = -np.arccos(np.clip(scored.cosines, -1, 1))
        value = correlation(angles, scored.grades).pearson
        yield replace(plain, measure=ANGLE, value=value)


def papers_means(figures: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the means of the papers' protocol, and of Table 1 of ACL 2019 (all sets).

    The label of a year with missing sets names them ("2013 without SMT"). Averages over the years
    and over all sets need complete years, and are computed both with and without SMT.

    Args:
        figures: For each key of a set, Pearson's correlation and those of resamples, (1 + R,).
    """
    years = year_sets(figures, smt=True)
    if YEAR_OF_SMT in years:
        keys = [key for key in years[YEAR_OF_SMT] if key != SMT]
        years[YEAR_OF_SMT + WITHOUT_SMT] = keys
    means = {label: _mean(figures, years[label]) for label in sorted(years)}
    averages = {}
    means_of_sets = {}
    for suffix in ("", WITHOUT_SMT):
        labels = [year.replace(YEAR_OF_SMT, YEAR_OF_SMT + suffix) for year in YEARS]
        if set(labels).issubset(means):
            keys = list(chain.from_iterable(years[label] for label in labels))
            averages[AVERAGE + suffix] = _mean(means, labels)
            means_of_sets[ALL_SETS + suffix] = _mean(figures, keys)
    return means | averages | means_of_sets


def _mean(figures: Mapping[str, Floats], keys: Iterable[str]) -> Floats:
    return np.mean([figures[key] for key in keys], axis=0)


def pooled_spearman(sets: Mapping[str, SetScores]) -> dict[str, float]:
    """Return Sentence-BERT's figures: Spearman over all pairs of a year, and their average."""
    years = year_sets(sets, smt=False)
    for year in YEARS:
        if year in sets:
            years[year] = [year]
    pooled = {}
    for label in sorted(years):
        parts = [sets[key] for key in years[label]]
        year_cosines = np.concatenate([part.cosines for part in parts])
        year_grades = np.concatenate([part.grades for part in parts])
        pooled[label] = correlation(year_cosines, year_grades).spearman
    if pooled.keys() >= set(YEARS):
        pooled[AVERAGE] = float(np.mean(list(pooled.values())))
    return pooled


def mteb_spearman(sets: Mapping[str, SetScores], pooled: Mapping[str, float]) -> dict[str, float]:
    """Return mteb's figures by its names of the tasks; STS12-16 is the mean of the years."""
    tasks = {}
    for year in YEARS:
        if year in pooled:
            tasks[f"STS{year[2:]}"] = pooled[year]
    if AVERAGE in pooled:
        tasks["STS12-16"] = pooled[AVERAGE]
    for key in sets:
        if key in INFOS and INFOS[key].mteb:
            tasks[INFOS[key].mteb] = sets[key].spearman
    return tasks


def year_sets(sets: Iterable[str], smt: bool) -> dict[str, list[str]]:
    """Return label of a year -> keys of its available sets; the label names the missing sets.

    With `smt`, SMT belongs to 2013 and may be missing; otherwise it is ignored.
    """
    available = set(sets)
    keys_by_label = {}
    for year in YEARS:
        present = []
        missing = []
        for info in SETS[year]:
            if info.key == SMT and not smt:
                continue
            if info.key in available:
                present.append(info.key)
            else:
                missing.append(info.name)
        if present:
            label = f"{year} without {', '.join(missing)}" if missing else year
            keys_by_label[label] = present
    return keys_by_label


def tables(scores: list[Score], data: StsData) -> Iterator[str]:
    """Yield a table for each year and protocol, comparisons, and notes.

    Each heading names the protocol.
    """
    plain = [score for score in scores if not score.against]
    by_measure = report.grouped(plain, report.MEASURE)
    pearson_and_spearman = report.grouped(
        [score for score in plain if score.measure in (PEARSON, SPEARMAN)], _benchmark
    )
    altered = {key.partition("/")[0] for key in data.altered}
    are_years_altered = not altered.isdisjoint(YEARS)
    yield from _tables_of_years(plain)
    means = by_measure.get(MEAN_PEARSON, [])
    labels = {score.set for score in means if score.set[:4] in YEARS}
    yield from report.section(
        "STS 2012-2016, the papers' protocol: Pearson x 100 per set, mean over a year, mean over"
        " the years or all sets",
        means,
        note=_NOTE,
        published_table="" if are_years_altered else "sts",
        headings=[*sorted(labels.union(YEARS)), AVERAGE, ALL_SETS],
    )
    yield from report.section(
        "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over all pairs of a year, without"
        " SMT",
        by_measure.get(POOLED_SPEARMAN, []),
        published_table="" if are_years_altered else "sts-pooled",
        headings=[*YEARS, AVERAGE],
    )
    yield from report.section(
        "mteb's protocol: Spearman x 100 of cosines over all pairs of a task",
        by_measure.get(MTEB_SPEARMAN, []),
        published_table="" if altered else "mteb",
    )
    both = f"the papers' protocol: Pearson\\Spearman x 100 {_INTERVALS}"
    yield from report.section(
        f"STS 2017, {both}",
        pearson_and_spearman.get("2017", []),
        note=_TRACKS,
        column=_set_label,
        published_table="" if "2017" in altered else "sts-2017",
    )
    yield from report.section(
        f"STS Benchmark, {both}", pearson_and_spearman.get("stsb", []), column=_set_label
    )
    yield from report.section(
        "STS Benchmark, mUSE's similarity: Pearson x 100 of -arccos of the cosine",
        by_measure.get(ANGLE, []),
        column=_set_label,
        published_table="" if "stsb" in altered else "sts-angle",
    )
    yield from report.differences(scores)
    if altered:
        yield report.not_comparable(data.altered)
    for note in data.notes:
        yield f"- {note}"


def _tables_of_years(scores: list[Score]) -> Iterator[str]:
    """Yield a table of the sets and the mean of each year."""
    pearson = [score for score in scores if score.measure in (PEARSON, MEAN_PEARSON)]
    by_year = report.grouped(pearson, lambda score: score.set[:4])
    for year in YEARS:
        yield from report.section(
            f"STS {year}, the papers' protocol: Pearson x 100 {_INTERVALS}, mean over the sets",
            by_year.get(year, []),
            column=_set_label,
        )


def _benchmark(score: Score) -> str:
    return score.set.partition("/")[0]


def _set_label(score: Score) -> str:
    if "/" not in score.set:
        return f"mean {score.set}"
    name = score.set.partition("/")[2]
    return f"{name} ({score.items})"
