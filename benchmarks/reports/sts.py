"""The report's tables of graded similarity: STS by protocol, every sub-data set, Hard STS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum

from reports.sections import CONSTANT, PAIRS_IN_HEADS, Section, correlation, data_notes, graded, published_rows
from reports.sources import Collected
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.published import Published
from st_paragram.tools.evaluation.results import GradedResult, HardStsResult, Means, StsResult
from st_paragram.tools.evaluation.sts import benchmark
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, YEARS, select_sets
from st_paragram.tools.evaluation.sts.hard import PUBLISHED, PUBLISHED_NAMED, SPLITS

AVERAGE = "average"
WITHOUT_SMT = {"2013": "2013 without SMT", AVERAGE: "average without SMT"}
_ABOUT_HARD = (
    "Hard STS takes pairs of STS 2012-2016 whose likeness in words and in meaning disagree. "
    "Pairs that occur twice are taken once. The heads have the numbers of pairs that were scored here.\n"
    "Published rows have only Pearson's correlation.\n\n"
    "The splits are made by the grade (*gold*, 0 to 5) and by the symmetric word error rate (SWER): "
    "the lower it is, the more words the two sentences have in common."
)
_INTERVALS = "95 % intervals of Pearson x 100 (chance in the choice of pairs, not in the training):\n\n"


class Protocol(str, Enum):
    """How sets become means; the value is the field of a result."""

    PAPERS = "papers"
    SENTENCE_BERT = "sentence_bert"
    MTEB = "mteb"

    def means(self, result: StsResult) -> Means:
        """The means of a result by this protocol."""
        return {
            Protocol.PAPERS: result.papers,
            Protocol.SENTENCE_BERT: result.sentence_bert,
            Protocol.MTEB: result.mteb,
        }[self]


def sts_sections(collected: Collected[StsResult]) -> list[Section]:
    """A section for each protocol and for the sub-data sets; those without figures are left out."""
    scored = dict.fromkeys(name for result in collected.results.values() for name in result.sets)
    official = [info.key for info in select_sets((*BENCHMARKS, "stsb/train"))]
    sets = [name for name in official if name in scored] + [name for name in scored if name not in official]
    sections = [
        _protocol(
            collected,
            Protocol.PAPERS,
            "STS 2012-2016, the papers' protocol: Pearson x 100, mean over the sub-data sets of a year",
            (
                "Each year has several sets of pairs. The score of a year is the mean over its sets, "
                "and the average is the mean of the five years.\n"
                "The published rows have STS 2013 with its SMT data. Where it was not scored, "
                "only the columns without SMT have figures, and these cannot be compared with any published column."
            ),
            benchmark.ENGLISH_STS,
        ),
        _protocol(
            collected,
            Protocol.SENTENCE_BERT,
            "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over a year's concatenation, without SMT",
            "All pairs of a year are ranked together. The average is the mean of the five years.",
            benchmark.CONCATENATED_STS,
        ),
        _protocol(
            collected,
            Protocol.MTEB,
            "STS by mteb's protocol, computed here: Spearman x 100",
            (
                "In STS12-16 all pairs of a year are ranked together, in STS17 those of each pair of languages. "
                "Of the STS Benchmark, the test part is scored."
            ),
            (),
        ),
        _by_year(collected, [name for name in sets if name[:4] in YEARS]),
        _sets(collected, "STS 2017, track by track: Pearson / Spearman x 100", "2017", sets, benchmark.STS_2017),
        _sets(collected, "STS Benchmark: Pearson / Spearman x 100", "stsb", sets, ()),
    ]
    return [section for section in sections if section is not None]


def hard_sts_section(collected: Collected[HardStsResult]) -> Section | None:
    """The splits of Hard STS; None without figures."""
    results = collected.results
    splits = list(dict.fromkeys(name for result in results.values() for name in result.splits))
    if not splits:
        return None

    head = ["model", *(f"{name} ({_pairs(of.splits.get(name) for of in results.values())})" for name in splits)]
    rows = [[model, *(graded(of.splits.get(name)) for name in splits)] for model, of in results.items()]
    both = zip(PUBLISHED, PUBLISHED_NAMED, strict=True)  # the same models, in two tables of the paper
    rows += published_rows([replace(row, scores=row.scores | named.scores) for row, named in both], splits)
    definitions = "\n".join(f"- {split.name}: {split.definition}" for split in SPLITS if split.name in splits)
    records = collected.records()
    title = "Hard STS, splits by word error rate and negation: Pearson / Spearman x 100"
    notes = [*data_notes(records), *collected.notes]
    return Section(title, f"{_ABOUT_HARD}\n\n{definitions}", [markdown_table(head, rows)], records, notes)


def protocol_score(collected: Collected[StsResult], model: str, protocol: Protocol, column: str) -> float | None:
    """A figure of a protocol, as a share; None where there is none."""
    result = collected.results.get(model)
    return protocol.means(result).get(column) if result else None


def average_columns(collected: Collected[StsResult], protocol: Protocol = Protocol.PAPERS) -> dict[str, str]:
    """Heads "2012" .. "2016" and "average" -> the columns of a protocol that all models can be compared by.

    Those without SMT, unless every model that has an average has the one with SMT.
    """
    models = [model for model in _scored(collected) if protocol_score(collected, model, protocol, WITHOUT_SMT[AVERAGE])]
    complete = all(protocol_score(collected, model, protocol, AVERAGE) is not None for model in models)
    plain = {name: name for name in (*YEARS, AVERAGE)}
    return plain if complete else plain | WITHOUT_SMT


def _protocol(
    collected: Collected[StsResult], protocol: Protocol, title: str, about: str, rows: Sequence[Published]
) -> Section | None:
    found = {model: protocol.means(result) for model, result in _scored(collected).items()}
    columns = list(dict.fromkeys(name for each in found.values() for name, value in each.items() if value is not None))
    if not columns:
        return None
    shown = list(dict.fromkeys(name for row in rows for name in row.scores))
    head = [*shown, *(name for name in columns if name not in shown)]
    ours = [
        [model, *(_mean(collected.results[model], name, of.get(name)) for name in head)] for model, of in found.items()
    ]
    table = markdown_table(["model", *head], [*ours, *published_rows(rows, head)])
    records = collected.records(protocol.value)
    return Section(title, about, [table], records, [*data_notes(records), *collected.notes])


def _mean(result: StsResult, column: str, value: float | None) -> str:
    """A mean x 100; without one, "constant" if a set that goes into it has no correlation, "-" if sets are missing."""
    if value is not None:
        return hundredths(value)
    year = re.match(r"(?:20|STS)(1[2-6])\b", column)
    if not year and not column.startswith((AVERAGE, "all sets")):
        return MISSING
    years = (f"20{year[1]}",) if year else YEARS
    sets = [of for name, of in result.sets.items() if name.startswith(years)]
    return CONSTANT if any(of.pearson is None for of in sets) else MISSING


def _by_year(collected: Collected[StsResult], sets: Sequence[str]) -> Section | None:
    years = [year for year in YEARS if any(name.startswith(year) for name in sets)]
    tables = []
    for year in years:
        names = [name for name in sets if name.startswith(year)]
        head = ["model", *(f"{name.partition('/')[2]} ({_set_pairs(collected, name)})" for name in names)]
        rows = [[model, *(_interval(of.sets.get(name)) for name in names)] for model, of in _scored(collected).items()]
        tables.append(f"### STS {year}\n\n" + markdown_table(head, rows))
    title = "STS 2012-2016, every sub-data set: Pearson x 100 (95 % interval)"
    return Section(title, PAIRS_IN_HEADS, tables, collected.records("sets"), collected.notes) if tables else None


def _sets(
    collected: Collected[StsResult], title: str, benchmark: str, sets: Sequence[str], rows: Sequence[Published]
) -> Section | None:
    keys = {name.partition("/")[2]: name for name in sets if name.startswith(f"{benchmark}/")}
    if not keys:
        return None
    scored = {model: of for model, of in _scored(collected).items() if not of.sets.keys().isdisjoint(keys.values())}
    head = ["model", *(f"{name} ({_set_pairs(collected, key)})" for name, key in keys.items())]
    ours = [[model, *(graded(of.sets.get(key)) for key in keys.values())] for model, of in scored.items()]
    intervals = [[model, *(_interval(of.sets.get(key)) for key in keys.values())] for model, of in scored.items()]
    tables = [markdown_table(head, [*ours, *published_rows(rows, list(keys))])]
    tables.append(_INTERVALS + markdown_table(head, intervals))
    found = [record for key in keys.values() for record in collected.records("sets", key)]
    records = [record for index, record in enumerate(found) if record not in found[:index]]
    return Section(title, PAIRS_IN_HEADS, tables, records, collected.notes)


def _scored(collected: Collected[StsResult]) -> dict[str, StsResult]:
    """Models with any scores, and not just a speed."""
    return {
        model: result
        for model, result in collected.results.items()
        if result.sets or any(means for means in (result.papers, result.sentence_bert, result.mteb))
    }


def _set_pairs(collected: Collected[StsResult], key: str) -> str:
    return _pairs(result.sets.get(key) for result in collected.results.values())


def _pairs(figures: Iterable[GradedResult | None]) -> str:
    """The number of pairs; several, if models were scored on different ones."""
    return " or ".join(dict.fromkeys(f"{of.pairs:,}" for of in figures if of)) or MISSING


def _interval(figures: GradedResult | None) -> str:
    if figures is None:
        return MISSING
    if figures.pearson is None or figures.low is None or figures.high is None:
        return correlation(figures.pearson, figures)
    return f"{hundredths(figures.pearson)} ({hundredths(figures.low)} to {hundredths(figures.high)})"
