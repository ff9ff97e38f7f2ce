"""Scores on STS as Markdown tables beside published rows; each heading names the protocol."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from st_paragram.evaluation.published import CONCATENATED_STS, ENGLISH_STS, STATIC_MODELS, STS_2017, Published
from st_paragram.evaluation.sts.catalogue import BENCHMARKS, SMT, YEARS
from st_paragram.evaluation.sts.protocols import AVERAGE, Mean, concatenation_means, papers_means
from st_paragram.evaluation.sts.scores import Bootstrap, ModelScores, SetScores
from st_paragram.tables import MISSING, hundredths, markdown_table

Models = Mapping[str, ModelScores]


def sts_tables(models: Models, bootstrap: Bootstrap | None = None) -> Iterator[str]:
    """Everything there is to say of models scored on the same data, table by table.

    Args:
        models: name -> scores.
        bootstrap: of the same models, for intervals.
    """
    for year in YEARS:
        yield from _year_table(models, year, bootstrap)
    yield from _papers_table(models)
    yield from _sentence_bert_table(models)
    yield from _mteb_table(models)
    yield from _both_table(models, "2017", "STS 2017, the papers' protocol", STS_2017, bootstrap)
    yield from _both_table(models, "stsb", "STS Benchmark", (), bootstrap)
    rates = [[name, f"{scores.sentences_per_second:,.0f}"] for name, scores in models.items()]
    yield _section("Speed: all sentences encoded a second time, warm, in one call", ["model", "sentences/s"], rates)


def comparison_table(models: Models, bootstrap: Bootstrap) -> Iterator[str]:
    """Every model against the first, by paired bootstrap."""
    first, *others = models
    head = ["Pearson x 100", "difference", "95 % interval", "p"]
    for other in others:
        rows = []
        for label, found in bootstrap.compare(first, other).items():
            ends = f"{_signed(found.low)} .. {_signed(found.high)}" if math.isfinite(found.low) else MISSING
            p_value = f"{found.p_value:.4f}" if math.isfinite(found.p_value) else "undefined"
            rows.append([_of_protocol(label), _signed(found.difference), ends, p_value])
        title = f"{other} against {first}: paired bootstrap of Pearson, papers' protocol"
        yield _section(title, head, rows)


def _year_table(models: Models, year: str, bootstrap: Bootstrap | None) -> Iterator[str]:
    sizes = _sizes(models, year)
    if not sizes:
        return
    means = [mean for mean in papers_means(sizes) if mean.label.startswith(year) and mean.groups]
    head = ["model", *(f"{_name(key)} ({n})" for key, n in sizes.items()), *(f"mean {m.label}" for m in means)]
    rows = [
        [
            name,
            *(_pearson(scores.sets[key]) + _ends(bootstrap, name, key) for key in sizes),
            *(_mean_cell(mean, scores.pearson, scores) for mean in means),
        ]
        for name, scores in models.items()
    ]
    yield _section(
        f"STS {year}, the papers' protocol: Pearson x 100{_brackets(bootstrap)}, mean over the sets", head, rows
    )


def _papers_table(models: Models) -> Iterator[str]:
    keys = next(iter(models.values())).sets
    means = papers_means(keys)
    if not any(mean.groups for mean in means):
        return
    means = _with_all_years(means, (AVERAGE, f"{AVERAGE} without SMT"), f"{SMT[:4]} without SMT")
    rows = [[name, *(_mean_cell(mean, scores.pearson, scores) for mean in means)] for name, scores in models.items()]
    rows += _published_rows(ENGLISH_STS, [mean.label for mean in means])
    title = "STS 2012-2016, the papers' protocol: Pearson x 100 per set, mean over a year, mean over the years"
    yield _section(
        title,
        ["model", *(mean.label for mean in means)],
        rows,
        "Rows marked as published are the papers' and have SMT in 2013.",
    )


def _sentence_bert_table(models: Models) -> Iterator[str]:
    means = concatenation_means(next(iter(models.values())).years)
    if not any(mean.groups for mean in means):
        return
    means = _with_all_years(means, (AVERAGE,))
    rows = [
        [name, *(_mean_cell(mean, scores.spearman, scores, of_years=True) for mean in means)]
        for name, scores in models.items()
    ]
    rows += _published_rows(CONCATENATED_STS, [mean.label for mean in means])
    title = "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over a year's concatenation, without SMT"
    yield _section(title, ["model", *(mean.label for mean in means)], rows)


def _mteb_table(models: Models) -> Iterator[str]:
    figures = {name: scores.mteb() for name, scores in models.items()}
    names = list(next(iter(figures.values())))
    if not names:
        return
    tasks = [BENCHMARKS[year].task for year in YEARS]
    mean_name, head = "STS12-16", ["model", *names]
    complete = set(tasks) <= set(names)
    if complete:
        head.append(mean_name)
    rows = []
    for name, values in figures.items():
        cells = [_figure(values[task]) for task in names]
        if complete:
            cells.append(_figure(sum(values[task] or 0.0 for task in tasks) / len(tasks)))
        rows.append([name, *cells])
    rows += _published_rows(STATIC_MODELS, head[1:])
    yield _section("mteb's protocol: Spearman x 100 of cosines over all pairs of a task", head, rows)


def _both_table(
    models: Models, benchmark: str, title: str, published: Sequence[Published], bootstrap: Bootstrap | None
) -> Iterator[str]:
    sizes = _sizes(models, benchmark)
    if not sizes:
        return
    rows = [
        [name, *(_both(scores.sets[key]) + _ends(bootstrap, name, key) for key in sizes)]
        for name, scores in models.items()
    ]
    rows += _published_rows(published, [_name(key) for key in sizes])
    head = ["model", *(f"{_name(key)} ({n})" for key, n in sizes.items())]
    note = "es-en is track 4a, es-en-4b that of WMT's sentences." if "2017/es-en" in sizes else ""
    yield _section(f"{title}: Pearson\\Spearman x 100{_brackets(bootstrap)}", head, rows, note)


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


def _sizes(models: Models, benchmark: str) -> dict[str, int]:
    sets = next(iter(models.values())).sets
    return {key: len(of_set.grades) for key, of_set in sets.items() if key.startswith(f"{benchmark}/")}


def _pearson(scores: SetScores) -> str:
    return scores.undefined or hundredths(scores.correlation.pearson)


def _both(scores: SetScores) -> str:
    found = scores.correlation
    return scores.undefined or f"{hundredths(found.pearson)}\\{hundredths(found.spearman)}"


def _ends(bootstrap: Bootstrap | None, model: str, key: str) -> str:
    if bootstrap is None:
        return ""
    ends = bootstrap.interval(model, key)
    return f" [{hundredths(ends.low)}, {hundredths(ends.high)}]" if math.isfinite(ends.low) else ""


def _brackets(bootstrap: Bootstrap | None) -> str:
    return " [95 % interval of Pearson]" if bootstrap else ""


def _mean_cell(mean: Mean, figures: Mapping[str, float], scores: ModelScores, of_years: bool = False) -> str:
    if undefined := mean.undefined(figures):
        known = scores.years if of_years else scores.sets
        return "undefined (" + ", ".join(f"{known[key].undefined} on {_name(key)}" for key in undefined) + ")"
    return hundredths(mean.of(figures))


def _figure(value: float | None) -> str:
    return "undefined" if value is not None and not math.isfinite(value) else hundredths(value)


def _of_protocol(label: str) -> str:
    return label if "/" in label or label.startswith(AVERAGE) else f"mean {label}"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}" if math.isfinite(value) else "undefined"


def _name(key: str) -> str:
    return key.partition("/")[2] or key


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    return f"### {title}\n\n{markdown_table(head, rows)}\n" + (f"\n{note}\n" if note else "")
