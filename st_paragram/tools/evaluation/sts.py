"""STS 2012-2017 and the STS Benchmark, by three protocols.

The papers' (Wieting et al.): Pearson per data set, mean over the sets of a year, mean over the years. Table 1 of ACL
2019 has the mean over all sets of all years instead, which is another figure: years have from 4 to 6 sets.
Sentence-BERT's (Reimers & Gurevych, EMNLP 2019; so too SimCSE): Spearman over all pairs of a year, without SMT.
mteb's: Spearman over the pairs of a task; its STS12-STS16 are the same years without SMT.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Found, Request
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.scores import (
    Floats,
    Sample,
    Score,
    correlation,
    differences_of,
    pair_cosines,
    pearson,
    resampled,
    scores_of,
)
from st_paragram.tools.evaluation.sets import BENCHMARKS, SMT, YEARS, StsData, has_sts, read_sts

AVERAGE, ALL_SETS = "average", "all sets"
PEARSON, SPEARMAN = "Pearson", "Spearman"
#: Measures of means: the papers' protocol, Sentence-BERT's and mteb's.
MEAN_PEARSON, POOLED_SPEARMAN, MTEB_SPEARMAN = "mean Pearson", "pooled Spearman", "mteb Spearman"
Number = TypeVar("Number", float, Any)

_INTERVALS = "[95 % interval of Pearson]"


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has files of a year of STS, or of the STS Benchmark."""
    return has_sts(data, BENCHMARKS)


def run(request: Request) -> Found:
    """Score models on what a folder, or the Hugging Face hub, has of STS."""
    data = read_sts(request.data, request.sets, request.hub)
    cosines = score_each(request.models, lambda model: _cosines(model, data), request.untrained)
    scores = sts_scores(cosines, data, request.compare)
    return scores, tables(scores, data)


def _cosines(model: TextEncoder, data: StsData) -> dict[str, Floats]:
    return {key: pair_cosines(model, pairs) for key, pairs in data.everything.items()}


def sts_scores(cosines: Mapping[str, Mapping[str, Floats]], data: StsData, compare: bool = False) -> list[Score]:
    """All figures, from model -> key of a set -> cosines; with `compare`, differences to the first model, too."""
    scores: list[Score] = []
    samples: dict[str, dict[str, Sample]] = {model: {} for model in cosines}  # of Pearson
    for key, pairs in data.sets.items():
        grades, seed = np.array(pairs.grades), (0, zlib.crc32(key.encode()))
        for model, of in cosines.items():
            own = of[key]
            draws = resampled(lambda rows, x=own, y=grades: pearson(x[rows], y[rows]), len(pairs), seed)  # type: ignore[misc]
            samples[model][key] = correlation(own, grades).pearson, draws
        scores += scores_of("sts", key, PEARSON, {model: of[key] for model, of in samples.items()}, len(pairs))
    scores += [score for model, of in cosines.items() for score in _rest(model, of, samples[model], data)]
    if compare:
        for label, value in _compared(next(iter(samples.values())), 0).items():
            if value is not None:
                each = {m: (_compared(of, 0)[label], _compared(of, 1)[label]) for m, of in samples.items()}
                scores += differences_of("sts", label, PEARSON if "/" in label else MEAN_PEARSON, each, 0)
    return scores


def _compared(samples: Mapping[str, Sample], part: int) -> dict[str, Any]:
    """The papers' means and single sets of a model: figures (part 0), or the same on resamples (part 1)."""
    figures: dict[str, Any] = {key: sample[part] for key, sample in samples.items()}
    return papers_means(figures) | {key: value for key, value in figures.items() if key[:4] not in YEARS}


def _rest(model: str, cosines: Mapping[str, Floats], pearsons: Mapping[str, Sample], data: StsData) -> list[Score]:
    """Spearman of sets, and the means of the three protocols; None where a set has no correlation."""
    grades = {key: np.array(pairs.grades) for key, pairs in data.everything.items()}
    spearman = {key: correlation(cosines[key], grades[key]).spearman for key in data.sets}
    pooled = {year: correlation(cosines[year], grades[year]).spearman for year in data.years}
    for label, keys in concatenations(data.sets).items():
        joined = [np.concatenate([of[key] for key in keys]) for of in (cosines, grades)]
        pooled[label] = correlation(*joined).spearman
    means = papers_means({key: value for key, (value, _) in pearsons.items()})
    mteb = {name: value for key, value in {**pooled, **spearman}.items() if (name := mteb_name(key))}
    years = [mteb.get(f"STS{year[2:]}") for year in YEARS]
    if (whole := _mean(years)) is not None:
        mteb["STS12-16"] = whole
    found = {
        SPEARMAN: spearman,
        MEAN_PEARSON: {label: value for label, value in means.items() if value is not None},
        POOLED_SPEARMAN: {label: v for label, v in pooled_means(dict(sorted(pooled.items()))).items() if v is not None},
        MTEB_SPEARMAN: mteb,
    }
    sizes = {key: len(pairs) for key, pairs in data.sets.items()}
    return [
        score
        for measure, values in found.items()
        for name, value in values.items()
        for score in scores_of("sts", name, measure, {model: (value, None)}, sizes.get(name, 0))
    ]


def papers_means(sets: Mapping[str, Number]) -> dict[str, Number | None]:
    """Means of the papers' protocol, from key -> figure (or figures on resamples); None where sets are missing.

    A year of which sets are missing has a label that names them ("2013 without SMT") and None under its own. The
    average without SMT, and if other sets are missing, that of what there is, have labels that say so.
    """
    years: dict[str, Number | None] = {}
    for year in YEARS:
        years |= _year(year, [info.key for info in BENCHMARKS[year].sets], sets)
    without = f"{SMT[:4]} without SMT"
    averages = {
        AVERAGE: _mean([years.get(year) for year in YEARS]),
        f"{AVERAGE} without SMT": _mean([years.get(without if year == SMT[:4] else year) for year in YEARS]),
    }
    every = [info.key for year in YEARS for info in BENCHMARKS[year].sets]
    all_sets = {
        ALL_SETS: _mean([sets.get(key) for key in every]),
        f"{ALL_SETS} without SMT": _mean([sets.get(key) for key in every if key != SMT]),
    }
    return years | averages | _average_of_what_there_is(years, averages) | all_sets


def concatenations(sets: Collection[str]) -> dict[str, list[str]]:
    """Label of a year -> keys of its sets without SMT, all of whose pairs are scored as one; years with sets only."""
    found = {}
    for year in YEARS:
        wanted = [info.key for info in BENCHMARKS[year].sets if info.key != SMT]
        if here := [key for key in wanted if key in sets]:
            found[_label(year, [key for key in wanted if key not in sets])] = here
    return found


def pooled_means(years: Mapping[str, float]) -> dict[str, float | None]:
    """Sentence-BERT's figures: each year's, by the labels of `concatenations`, and their average."""
    average = {AVERAGE: _mean([years.get(year) for year in YEARS])}
    return {**years, **average, **_average_of_what_there_is(years, average)}


def mteb_name(key: str) -> str:
    """The name in mteb of a year, a track or the STS Benchmark's test set; empty if it has none."""
    benchmark, _, name = key.partition("/")
    if key[:4] in YEARS:
        return "" if name else f"STS{key[2:]}"
    subset = next((info.mteb for info in BENCHMARKS[benchmark].sets if info.name == name), "")
    if benchmark == "stsb":
        return "STSBenchmark" if name == "test" else ""
    return f"STS17/{subset}" if subset else ""


def _label(year: str, missing: list[str]) -> str:
    return f"{year} without {', '.join(key.partition('/')[2] for key in missing)}" if missing else year


def _year(year: str, wanted: list[str], sets: Mapping[str, Number]) -> dict[str, Number | None]:
    here, missing = ([key for key in wanted if (key in sets) == there] for there in (True, False))
    if not here:
        return {}
    if missing:
        return {year: None, _label(year, missing): _mean([sets[key] for key in here])}
    means = {year: _mean([sets[key] for key in here])}
    return means | ({f"{year} without SMT": _mean([sets[k] for k in here if k != SMT])} if SMT in here else {})


def _average_of_what_there_is(
    years: Mapping[str, Number | None], averages: Mapping[str, Number | None]
) -> dict[str, Number | None]:
    best = {label[:4]: label for label in reversed(list(years)) if years[label] is not None}  # with SMT before without
    if len(best) < 2 or any(value is not None for value in averages.values()):
        return {}
    used = [best[year] for year in YEARS if year in best]
    return {f"{AVERAGE} of {', '.join(used)}": _mean([years[label] for label in used])}


def _mean(values: list[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) / len(known) if len(known) == len(values) else None


def tables(scores: list[Score], data: StsData) -> Iterator[str]:
    """A table for each year and protocol, comparisons, and notes, part by part; each heading names the protocol."""
    plain = [score for score in scores if not score.against]
    of_years = [score for score in plain if score.set[:4] in YEARS]
    changed = any(key[:4] in YEARS for key in data.altered)
    for year in YEARS:
        own = [s for s in of_years if s.set.startswith(year) and s.measure in (PEARSON, MEAN_PEARSON)]
        title = f"STS {year}, the papers' protocol: Pearson x 100 {_INTERVALS}, mean over the sets"
        yield from report.section(title, own, _set_label)
    title = (
        "STS 2012-2016, the papers' protocol: Pearson x 100 per set, mean over a year, mean over the years or all sets"
    )
    note = (
        "The average is the mean over the years, as in the papers of 2020 and 2022; the mean over all sets is what ACL "
        "2019 gives. Rows marked as published are the papers' own figures, which have SMT in 2013."
    )
    means = [score for score in plain if score.measure == MEAN_PEARSON]
    columns = _columns(papers_means(dict.fromkeys(data.sets, 0.0)))
    yield from report.section(title, means, known="" if changed else "sts", note=note, headings=columns)
    title = "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over a year's concatenation, without SMT"
    pooled = [score for score in plain if score.measure == POOLED_SPEARMAN]
    columns = _columns([*(score.set for score in pooled), AVERAGE])
    yield from report.section(title, pooled, known="" if changed else "sts-pooled", headings=columns)
    title = "mteb's protocol: Spearman x 100 of cosines over all pairs of a task"
    mteb = [score for score in plain if score.measure == MTEB_SPEARMAN]
    yield from report.section(title, mteb, known="" if data.altered else "mteb")
    for name, title in (("2017", "STS 2017, the papers' protocol"), ("stsb", "STS Benchmark")):
        own = [score for score in plain if score.set.startswith(f"{name}/")]
        known = "" if any(key.startswith("2017/") for key in data.altered) else "sts-2017"
        note = "The column es-en is track 4a; es-en-4b is track 4b, whose sentences are from WMT."
        yield from report.section(
            f"{title}: Pearson\\Spearman x 100 {_INTERVALS}", own, _set_label, known, note if name == "2017" else ""
        )
    yield from report.differences(scores)
    if data.altered:
        yield report.not_comparable(data.altered)
    yield from (f"- {note}" for note in data.notes)


def _columns(labels: Iterable[str]) -> list[str]:
    """Labels of means with all years, which published rows have, in the order of the years."""
    others = [label for label in labels if label[:4] not in YEARS]
    return [*sorted({*YEARS, *labels}.difference(others)), *dict.fromkeys(others)]


def _set_label(score: Score) -> str:
    return f"{score.set.partition('/')[2]} ({score.items})" if "/" in score.set else f"mean {score.set}"
