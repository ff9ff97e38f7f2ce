"""Scores on STS as Markdown tables beside published rows; each heading names the protocol."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.published import (
    ALL_SETS_STS,
    CONCATENATED_STS,
    ENGLISH_STS,
    STATIC_MODELS,
    STS_2017,
    Published,
)
from st_paragram.tools.evaluation.results import GradedResult, StsResult, StsRun
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, SMT, YEARS
from st_paragram.tools.evaluation.sts.protocols import ALL_SETS, AVERAGE, Mean, concatenation_means, papers_means

_Sets = Mapping[str, GradedResult]


def sts_report(run: StsRun) -> Iterator[str]:
    """Everything there is to say of models scored on the same data, part by part: tables, comparisons, notes."""
    for year in YEARS:
        yield from _year_table(run, year)
    yield from _papers_table(run)
    yield from _sentence_bert_table(run)
    yield from _mteb_table(run)
    yield from _both_table(run, "2017", "STS 2017, the papers' protocol", STS_2017)
    yield from _both_table(run, "stsb", "STS Benchmark", ())
    rates = [[name, f"{of.sentences_per_second:,.0f}"] for name, of in run.models.items() if of.sentences_per_second]
    note = "All sentences were encoded a second time, in one call."
    yield _section("Speed of encoding", ["model", "sentences/s"], rates, note)
    yield from _comparison_tables(run)
    if run.resamples:
        yield f"The 95 % intervals are percentiles of {run.resamples} bootstrap resamples with seed {run.seed}."
    yield from (f"- {note}" for note in run.notes)


def _comparison_tables(run: StsRun) -> Iterator[str]:
    """Every model against the one it was compared with, by paired bootstrap."""
    head = ["Pearson x 100", "difference", "95 % interval", "p"]
    for name, result in run.models.items():
        if result.against is None:
            continue
        rows = []
        for label, found in result.against.differences.items():
            cells = ["undefined", MISSING, "undefined"]
            if found is not None:
                cells = [_signed(found.difference), f"{_signed(found.low)} .. {_signed(found.high)}"]
                cells.append(f"{found.p_value:.4f}")
            rows.append([_of_protocol(label), *cells])
        title = f"{name} against {result.against.model}: paired bootstrap of Pearson, the papers' protocol"
        yield _section(title, head, rows)


def _year_table(run: StsRun, year: str) -> Iterator[str]:
    sizes = _sizes(run, year)
    if not sizes:
        return
    means = [mean for mean in papers_means(sizes) if mean.label.startswith(year) and mean.groups]
    head = ["model", *(f"{_name(key)} ({n})" for key, n in sizes.items()), *(f"mean {m.label}" for m in means)]
    rows = [
        [
            name,
            *(_pearson(result.sets[key]) + _ends(result.sets[key]) for key in sizes),
            *(_mean_cell(mean, _pearsons(result.sets), result.sets) for mean in means),
        ]
        for name, result in run.models.items()
    ]
    yield _section(f"STS {year}, the papers' protocol: Pearson x 100{_brackets(run)}, mean over the sets", head, rows)


def _papers_table(run: StsRun) -> Iterator[str]:
    means = papers_means(_first(run).sets)
    if not any(mean.groups for mean in means):
        return
    averages = [label + rest for label in (AVERAGE, ALL_SETS) for rest in ("", " without SMT")]
    means = _with_all_years(means, averages, f"{SMT[:4]} without SMT")
    rows = [
        [name, *(_mean_cell(mean, _pearsons(result.sets), result.sets) for mean in means)]
        for name, result in run.models.items()
    ]
    rows += _published_rows(ENGLISH_STS + ALL_SETS_STS, [mean.label for mean in means])
    title = (
        "STS 2012-2016, the papers' protocol: Pearson x 100 per set, mean over a year, mean over the years or all sets"
    )
    note = (
        "The average is the mean over the years, as in the papers of 2020 and 2022; the mean over all sets is what ACL "
        "2019 gives. Rows marked as published are the papers' own figures, which have SMT in 2013."
    )
    yield _section(title, ["model", *(mean.label for mean in means)], rows, note)


def _sentence_bert_table(run: StsRun) -> Iterator[str]:
    means = concatenation_means(_first(run).years)
    if not any(mean.groups for mean in means):
        return
    means = _with_all_years(means, (AVERAGE,))
    rows = [
        [name, *(_mean_cell(mean, _spearmans(result.years), result.years) for mean in means)]
        for name, result in run.models.items()
    ]
    rows += _published_rows(CONCATENATED_STS, [mean.label for mean in means])
    title = "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over a year's concatenation, without SMT"
    yield _section(title, ["model", *(mean.label for mean in means)], rows)


def _mteb_table(run: StsRun) -> Iterator[str]:
    names = list(_first(run).mteb)
    if not names:
        return
    tasks = [BENCHMARKS[year].task for year in YEARS]
    complete = set(tasks) <= set(names)
    head = ["model", *names, *(["STS12-16"] if complete else [])]
    rows = []
    for name, result in run.models.items():
        values = [result.mteb[task] for task in names]
        if complete:
            years = [result.mteb[task] for task in tasks]
            values.append(None if None in years else sum(value for value in years if value is not None) / len(tasks))
        rows.append([name, *("undefined" if value is None else hundredths(value) for value in values)])
    rows += _published_rows(STATIC_MODELS, head[1:])
    yield _section("mteb's protocol: Spearman x 100 of cosines over all pairs of a task", head, rows)


def _both_table(run: StsRun, benchmark: str, title: str, published: Sequence[Published]) -> Iterator[str]:
    sizes = _sizes(run, benchmark)
    if not sizes:
        return
    rows = [
        [name, *(_both(result.sets[key]) + _ends(result.sets[key]) for key in sizes)]
        for name, result in run.models.items()
    ]
    rows += _published_rows(published, [_name(key) for key in sizes])
    head = ["model", *(f"{_name(key)} ({n})" for key, n in sizes.items())]
    note = (
        "The column es-en is track 4a; es-en-4b is track 4b, whose sentences are from WMT."
        if "2017/es-en" in sizes
        else ""
    )
    yield _section(f"{title}: Pearson\\Spearman x 100{_brackets(run)}", head, rows, note)


def _published_rows(published: Sequence[Published], columns: Sequence[str]) -> list[list[str]]:
    """Rows with a figure in at least one of the columns."""
    rows = [[row.label, *(_published_cell(row, column) for column in columns)] for row in published]
    return [row for row in rows if set(row[1:]) != {MISSING}]


def _published_cell(row: Published, column: str) -> str:
    cell = hundredths(row.scores.get(column))
    return f"{cell}\\{hundredths(row.spearman[column])}" if column in row.spearman else cell


def _with_all_years(means: list[Mean], averages: Sequence[str], extra: str = "") -> list[Mean]:
    """Columns for all years (published rows have them), even those without data of ours."""
    by_label = {mean.label: mean for mean in means}
    wanted = [label for year in YEARS for label in (year, extra) if label == year or (label and label[:4] == year)]
    others = [mean.label for mean in means if mean.label not in (*wanted, *averages)]
    labels = sorted([*wanted, *(label for label in others if label[:4] in YEARS)])
    labels += [*averages, *(label for label in others if label[:4] not in YEARS)]
    return [by_label.get(label, Mean(label)) for label in labels]


def _first(run: StsRun) -> StsResult:
    return next(iter(run.models.values()))


def _sizes(run: StsRun, benchmark: str) -> dict[str, int]:
    return {key: of.pairs for key, of in _first(run).sets.items() if key.startswith(f"{benchmark}/")}


def _pearsons(sets: _Sets) -> dict[str, float]:
    """NaN, which makes a mean NaN, where there is no correlation."""
    return {key: math.nan if of.pearson is None else of.pearson for key, of in sets.items()}


def _spearmans(sets: _Sets) -> dict[str, float]:
    return {key: math.nan if of.spearman is None else of.spearman for key, of in sets.items()}


def _pearson(of: GradedResult) -> str:
    return of.undefined or hundredths(of.pearson)


def _both(of: GradedResult) -> str:
    return of.undefined or f"{hundredths(of.pearson)}\\{hundredths(of.spearman)}"


def _ends(of: GradedResult) -> str:
    return "" if of.low is None or of.high is None else f" [{hundredths(of.low)}, {hundredths(of.high)}]"


def _brackets(run: StsRun) -> str:
    return " [95 % interval of Pearson]" if run.resamples else ""


def _mean_cell(mean: Mean, figures: Mapping[str, float], sets: _Sets) -> str:
    if undefined := mean.undefined(figures):
        return "undefined (" + ", ".join(f"{sets[key].undefined} on {_name(key)}" for key in undefined) + ")"
    return hundredths(mean.of(figures))


def _of_protocol(label: str) -> str:
    return label if "/" in label or label.startswith((AVERAGE, ALL_SETS)) else f"mean {label}"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}"


def _name(key: str) -> str:
    return key.partition("/")[2] or key


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    return f"### {title}\n\n{markdown_table(head, rows)}\n" + (f"\n{note}\n" if note else "")
