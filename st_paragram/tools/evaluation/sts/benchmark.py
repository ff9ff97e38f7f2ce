"""STS 2012-2017 and the STS Benchmark: tables with published rows; each heading names the protocol."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.errors import SettingsError
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.bootstrap import RESAMPLES
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.published import Published, Source, rows
from st_paragram.tools.evaluation.published_sets import not_comparable
from st_paragram.tools.evaluation.results import GradedResult, StsResult, StsRun
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, SMT, YEARS
from st_paragram.tools.evaluation.sts.protocols import ALL_SETS, AVERAGE, Mean, concatenation_means, papers_means
from st_paragram.tools.evaluation.sts.scores import Bootstrap, score_sts, sts_result
from st_paragram.tools.evaluation.sts.sts_files import StsData, find_sts, has_sts

# Pearson, mean over all 25 sets of STS 2012-16, not over the years (Table 1): a million back-translations (ParaNMT),
# one and two million pairs of CzEng.
STS_BY_TEXT = rows(
    Source.SP,
    "back-translations bitext bitext-2x",
    """
    BLSTM-SP 20k: 66.5 66.4 66.2
    SP 20k: 69.7 70.0 71.0
    Word: 66.7 65.2 66.8
    Trigram: 70.0 70.0 70.6
    """,
)

# The same figures of pieces, for a column of means over all sets.
ALL_SETS_STS = tuple(
    Published(f"SP 20k, {text}", Source.SP, {"all sets": share})
    for text, share in (("1M back-translations", 0.697), ("1M bitext", 0.7), ("2M bitext", 0.71))
)

_Sets = Mapping[str, GradedResult]

_COLUMNS = "2012 2013 2014 2015 2016 average"

# Pearson, mean over the data sets of a year, 2013 with SMT; the mean of the years.
ENGLISH_STS = rows(
    Source.P_SP,
    _COLUMNS,
    """
    BERT (CLS): 33.2 29.6 34.3 45.1 48.4 38.1
    BERT (mean): 48.8 46.5 54.0 59.2 63.4 54.4
    InferSent: 61.1 51.4 68.1 70.9 70.7 64.4
    GenSen: 60.7 50.8 64.1 73.3 66.0 63.0
    USE: 61.4 59.0 70.6 74.3 73.9 67.8
    Sentence-BERT: 66.9 63.2 74.2 77.3 72.8 70.9
    LASER: 63.1 47.0 67.7 74.9 71.9 64.9
    P-SP: 68.7 64.7 78.1 81.4 80.0 74.6
    """,
) + rows(
    Source.BGT,
    _COLUMNS,
    """
    SP (1M en-fr pairs): 68.4 60.3 75.1 78.7 76.8 71.9
    BGT (1M en-fr pairs): 68.9 62.2 75.9 79.4 79.3 73.1
    """,
)

# Spearman over each year's concatenation, 2013 without SMT; the mean of the years.
CONCATENATED_STS = rows(
    Source.P_SP,
    _COLUMNS,
    """
    Sentence-BERT: 71.0 76.5 73.2 79.1 74.3 74.8
    P-SP: 71.2 76.5 74.6 83.0 79.1 76.9
    SimCSE RoBERTa base, unsupervised: - - - - - 77.4
    SimCSE RoBERTa large, unsupervised: - - - - - 77.9
    """,
)

# Pearson, with Spearman where given; columns are our names of the tracks, es-en being 4a.
STS_2017 = rows(
    Source.P_SP,
    "ar-ar ar-en es-es es-en tr-en",
    r"""
    LASER 1024d: 69.3\68.8 65.5\66.5 79.7\79.7 59.7\58.0 72.0\72.1
    LaBSE 768d: 68.6\69.1 72.2\74.5 79.5\80.8 65.5\65.7 72.9\72.1
    P-SP 1024d: 76.2\76.7 78.3\78.4 85.8\85.6 78.4\77.8 79.2\79.5
    """,
) + rows(
    Source.SP,
    "ar-ar ar-en es-es es-en en-en tr-en",
    """
    SP 20k 300d, 1M OpenSubtitles: 75.6 74.7 85.4 76.4 84.5 77.2
    SP 80k 1024d, 10M OpenSubtitles: 76.2 75.0 86.2 78.3 84.5 77.5
    SP 20k 300d, 2M Europarl: - - 78.6 54.9 79.1 -
    SP 20k 1024d, 2M Europarl: - - 81.0 56.4 80.4 -
    SP 20k, random: 61.9 17.5 68.8 6.5 67.0 23.1
    SP 40k, random: 58.3 16.1 68.2 10.4 66.6 22.2
    Trigram 300d, 1M OpenSubtitles: 75.6 75.2 84.1 73.2 83.5 74.8
    Trigram, random: 67.9 1.8 77.3 2.8 73.7 19.4
    """,
)

# mteb's protocol: mean of STS12-16's Spearman, STS17's Spearman, mean accuracy of the seven languages on Tatoeba.
STATIC_MODELS = rows(
    Source.MTEB,
    "STS12-16 STS17/en-ar STS17/es-en STS17/en-tr Tatoeba",
    """
    static-similarity-mrl-multilingual-v1: 75.9 69.9 74.9 68.2 92.5
    potion-multilingual-128M: 72.4 51.1 56.1 45.0 57.0
    potion-base-8M: 73.5 - - - -
    all-MiniLM-L6-v2 (transformer): 78.6 - - - -
    LaBSE (transformer): 69.3 74.5 65.7 72.1 96.5
    """,
)

RUN = StsRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has files of a year of STS, or of the STS Benchmark."""
    return has_sts(data, BENCHMARKS)


def run(request: Request) -> StsRun:
    """Score models on what a folder, or the Hugging Face hub, has of STS; errors as of `find_sts` and `run_sts`."""
    data = find_sts(request.data, request.sets, request.hub)
    return run_sts(request.models, data, request.untrained, request.compare)


def run_sts(
    names: Sequence[str],
    data: StsData,
    untrained: bool = False,
    compare: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> StsRun:
    """Score models on STS 2012-2017 and the STS Benchmark.

    Args:
        names: of the models.
        data: what there is of the benchmarks.
        untrained: add random embeddings.
        compare: compare every model with the first, by paired bootstrap.
        resamples: of the bootstrap; 0 for no intervals.
        seed: of the bootstrap.

    Raises:
        SettingsError: a number is negative, or there is nothing to compare, or no bootstrap to do it with.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    if resamples < 0 or seed < 0:
        raise SettingsError("resamples and seed are numbers from 0 on")
    if compare and not (resamples and len(set(names)) + untrained > 1):
        raise SettingsError("--compare needs two models or --untrained, and resamples to compare them on")
    scores = score_each(names, lambda model: score_sts(model, data), untrained)
    bootstrap = Bootstrap(scores, resamples, seed) if resamples else None
    first = next(iter(scores)) if compare else None
    results = {name: sts_result(of, name, bootstrap, first if name != first else None) for name, of in scores.items()}
    skipped = {key: pairs.skipped for key, pairs in data.sets.items() if pairs.skipped}
    return StsRun(results, data.notes, skipped, resamples, seed, data.altered())


def report(run: StsRun) -> Iterator[str]:
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
    if run.altered:
        yield not_comparable(run.altered)
    yield from (f"- {note}" for note in run.notes)


def _comparison_tables(run: StsRun) -> Iterator[str]:
    """Every model against the one it was compared with, by paired bootstrap."""
    head = ["Pearson x 100", "difference", "95 % interval", "p"]
    for name, result in run.models.items():
        if result.against is None:
            continue
        compared = []
        for label, found in result.against.differences.items():
            cells = ["undefined", MISSING, "undefined"]
            if found is not None:
                cells = [_signed(found.difference), f"{_signed(found.low)} .. {_signed(found.high)}"]
                cells.append(f"{found.p_value:.4f}")
            compared.append([_of_protocol(label), *cells])
        title = f"{name} against {result.against.model}: paired bootstrap of Pearson, the papers' protocol"
        yield _section(title, head, compared)


def _year_table(run: StsRun, year: str) -> Iterator[str]:
    sizes = _sizes(run, year)
    if not sizes:
        return
    means = [mean for mean in papers_means(sizes) if mean.label.startswith(year) and mean.groups]
    head = ["model", *(f"{_name(key)} ({n})" for key, n in sizes.items()), *(f"mean {m.label}" for m in means)]
    cells = [
        [
            name,
            *(_pearson(result.sets[key]) + _ends(result.sets[key]) for key in sizes),
            *(_mean_cell(mean, _pearsons(result.sets), result.sets) for mean in means),
        ]
        for name, result in run.models.items()
    ]
    yield _section(f"STS {year}, the papers' protocol: Pearson x 100{_brackets(run)}, mean over the sets", head, cells)


def _papers_table(run: StsRun) -> Iterator[str]:
    means = papers_means(_first(run).sets)
    if not any(mean.groups for mean in means):
        return
    averages = [label + rest for label in (AVERAGE, ALL_SETS) for rest in ("", " without SMT")]
    means = _with_all_years(means, averages, f"{SMT[:4]} without SMT")
    cells = [
        [name, *(_mean_cell(mean, _pearsons(result.sets), result.sets) for mean in means)]
        for name, result in run.models.items()
    ]
    cells += _published_rows(run, ENGLISH_STS + ALL_SETS_STS, [mean.label for mean in means])
    title = (
        "STS 2012-2016, the papers' protocol: Pearson x 100 per set, mean over a year, mean over the years or all sets"
    )
    note = (
        "The average is the mean over the years, as in the papers of 2020 and 2022; the mean over all sets is what ACL "
        "2019 gives. Rows marked as published are the papers' own figures, which have SMT in 2013."
    )
    yield _section(title, ["model", *(mean.label for mean in means)], cells, note)


def _sentence_bert_table(run: StsRun) -> Iterator[str]:
    means = concatenation_means(_first(run).years)
    if not any(mean.groups for mean in means):
        return
    means = _with_all_years(means, (AVERAGE,))
    cells = [
        [name, *(_mean_cell(mean, _spearmans(result.years), result.years) for mean in means)]
        for name, result in run.models.items()
    ]
    cells += _published_rows(run, CONCATENATED_STS, [mean.label for mean in means])
    title = "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over a year's concatenation, without SMT"
    yield _section(title, ["model", *(mean.label for mean in means)], cells)


def _mteb_table(run: StsRun) -> Iterator[str]:
    names = list(_first(run).mteb)
    if not names:
        return
    tasks = [BENCHMARKS[year].task for year in YEARS]
    complete = set(tasks) <= set(names)
    head = ["model", *names, *(["STS12-16"] if complete else [])]
    cells = []
    for name, result in run.models.items():
        values = [result.mteb[task] for task in names]
        if complete:
            years = [result.mteb[task] for task in tasks]
            values.append(None if None in years else sum(value for value in years if value is not None) / len(tasks))
        cells.append([name, *("undefined" if value is None else hundredths(value) for value in values)])
    cells += _published_rows(run, STATIC_MODELS, head[1:])
    yield _section("mteb's protocol: Spearman x 100 of cosines over all pairs of a task", head, cells)


def _both_table(run: StsRun, benchmark: str, title: str, published: Sequence[Published]) -> Iterator[str]:
    sizes = _sizes(run, benchmark)
    if not sizes:
        return
    cells = [
        [name, *(_both(result.sets[key]) + _ends(result.sets[key]) for key in sizes)]
        for name, result in run.models.items()
    ]
    cells += _published_rows(run, published, [_name(key) for key in sizes])
    head = ["model", *(f"{_name(key)} ({n})" for key, n in sizes.items())]
    note = (
        "The column es-en is track 4a; es-en-4b is track 4b, whose sentences are from WMT."
        if "2017/es-en" in sizes
        else ""
    )
    yield _section(f"{title}: Pearson\\Spearman x 100{_brackets(run)}", head, cells, note)


def _published_rows(run: StsRun, published: Sequence[Published], columns: Sequence[str]) -> list[list[str]]:
    """Rows with a figure in at least one of the columns whose data are what was published."""
    there = [not _altered(run, column) for column in columns]
    cells = [
        [
            row.label,
            *(_published_cell(row, name) if same else MISSING for name, same in zip(columns, there, strict=True)),
        ]
        for row in published
    ]
    return [row for row in cells if set(row[1:]) != {MISSING}]


def _altered(run: StsRun, column: str) -> bool:
    """Whether the set of a column is not what was published; of a column of years, any set of 2012-2016."""
    if column.startswith((*YEARS, AVERAGE, ALL_SETS, "STS12-16")):
        return any(key.startswith(YEARS) for key in run.altered)
    return f"2017/{column.removeprefix('STS17/')}" in run.altered


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


def _section(title: str, head: Sequence[str], cells: Sequence[Sequence[str]], note: str = "") -> str:
    return f"### {title}\n\n{markdown_table(head, cells)}\n" + (f"\n{note}\n" if note else "")
