"""How the figures of many STS data sets become one: the papers' protocol, Sentence-BERT's, mteb's.

The papers' (Wieting et al.): Pearson per data set, mean over the sets of a year, mean over the years. Table 1 of ACL
2019 has the mean over all sets of all years instead, which is another figure: years have from 4 to 6 sets.
Sentence-BERT's (Reimers & Gurevych, EMNLP 2019; so too SimCSE): Spearman over all pairs of a year, without SMT.
mteb's: Spearman over the pairs of a task; its STS12-STS16 are the same years without SMT.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, SMT, YEARS

AVERAGE = "average"
ALL_SETS = "all sets"
Number = TypeVar("Number")


@dataclass(frozen=True)
class Mean:
    """A mean of means that a protocol asks for.

    Args:
        label: e.g. "2013", "2013 without SMT", "average".
        groups: of keys; the mean is over groups, each being the mean of its keys. Empty if sets are missing.
    """

    label: str
    groups: tuple[tuple[str, ...], ...] = ()

    def of(self, figures: Mapping[str, Number]) -> Number | None:
        """The mean, of numbers or of arrays alike; None if a set is missing (undefined ones give NaN)."""
        if not self.groups:
            return None
        means = [_mean([figures[key] for key in group]) for group in self.groups]
        return _mean(means)

    def undefined(self, figures: Mapping[str, float]) -> list[str]:
        """Keys without a figure, for which there is no mean."""
        return [key for group in self.groups for key in group if not math.isfinite(figures[key])]


def papers_means(sets: Collection[str]) -> list[Mean]:
    """Means of the papers' protocol over the keys of the sets there are.

    A year of which sets are missing has a label that names them ("2013 without SMT") and nothing under its own. The
    average with SMT, the one without, and, if sets other than SMT are missing, that of what there is, with a label
    that says so. The mean over all sets, with SMT and without, comes last.
    """
    years: list[Mean] = []
    for year in YEARS:
        years += _year(year, [info.key for info in BENCHMARKS[year].sets], sets)
    by_label = {mean.label: mean for mean in years}
    smt = SMT.replace("/", " without ")
    without = [by_label.get(smt if year == SMT[:4] else year, Mean(year)) for year in YEARS]
    averages = [
        _average(AVERAGE, [by_label.get(year, Mean(year)) for year in YEARS]),
        _average(f"{AVERAGE} without SMT", without),
    ]
    return years + averages + _rest(years, averages) + _all_sets(sets)


def concatenations(sets: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Label of a year -> keys of its sets without SMT, all of whose pairs are scored as one; years with sets only."""
    found = {}
    for year in YEARS:
        wanted = [info.key for info in BENCHMARKS[year].sets if info.key != SMT]
        mean = _year(year, wanted, sets)[-1:]
        found.update({each.label: each.groups[0] for each in mean})
    return found


def concatenation_means(labels: Collection[str]) -> list[Mean]:
    """Sentence-BERT's means: each year's concatenation, and their average, over the labels of `concatenations`."""
    years = [Mean(label, ((label,),)) for label in labels]
    complete = [next((mean for mean in years if mean.label == year), Mean(year)) for year in YEARS]
    average = _average(AVERAGE, complete)
    return [*years, average, *_rest(years, [average])]


def mteb_label(key: str) -> str | None:
    """The name in mteb of a year's concatenation, a track or the test part of the STS Benchmark; None if it has none.

    Names of languages are in mteb's order: "2017/ar-en" is "STS17/en-ar".
    """
    benchmark, _, name = key.partition("/")
    if benchmark[:4] in YEARS:
        return f"STS{key[2:]}"
    if key == "stsb/test":
        return BENCHMARKS["stsb"].task
    subset = next((info.mteb for info in BENCHMARKS[benchmark].sets if info.name == name), "")
    return f"STS17/{subset}" if benchmark == "2017" and subset else None


def _year(year: str, wanted: list[str], sets: Collection[str]) -> list[Mean]:
    here = tuple(key for key in wanted if key in sets)
    missing = [key for key in wanted if key not in sets]
    if not here:
        return []
    if missing:
        names = ", ".join(key.partition("/")[2] for key in missing)
        return [Mean(year), Mean(f"{year} without {names}", (here,))]
    without = tuple(key for key in here if key != SMT)
    return [Mean(year, (here,))] + ([Mean(f"{year} without SMT", (without,))] if without != here else [])


def _average(label: str, years: list[Mean]) -> Mean:
    return Mean(label, tuple(mean.groups[0] for mean in years) if all(mean.groups for mean in years) else ())


def _all_sets(sets: Collection[str]) -> list[Mean]:
    """The mean over the sets of all years, whichever year each is of; nothing under a label whose sets are missing."""
    every = tuple(info.key for year in YEARS for info in BENCHMARKS[year].sets)
    without = tuple(key for key in every if key != SMT)
    labels = {ALL_SETS: every, f"{ALL_SETS} without SMT": without}
    return [Mean(label, (keys,) if set(keys) <= set(sets) else ()) for label, keys in labels.items()]


def _rest(years: list[Mean], averages: list[Mean]) -> list[Mean]:
    """The average of what there is, under a label that names it, if there is no other."""
    best = {mean.label[:4]: mean for mean in reversed(years) if mean.groups}  # with SMT before without
    if any(mean.groups for mean in averages) or len(best) < 2:
        return []
    used = [best[year] for year in YEARS if year in best]
    return [_average(f"{AVERAGE} of {', '.join(mean.label for mean in used)}", used)]


def _mean(values: list[Number]) -> Number:
    return sum(values[1:], start=values[0]) / len(values)  # type: ignore[operator, call-overload, no-any-return]
