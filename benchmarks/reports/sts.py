"""The report's tables of graded similarity: STS by protocol, every sub-data set, Hard STS."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reports.sections import CONSTANT, Section, data_notes, graded, published_rows, score
from reports.sources import PROTOCOLS, Collected
from st_paragram.evaluation import published
from st_paragram.evaluation.published import Published
from st_paragram.evaluation.sts.catalogue import BENCHMARKS, YEARS, select_sets
from st_paragram.tables import MISSING, hundredths, markdown_table

AVERAGE = "average"
WITHOUT_SMT = {"2013": "2013 without SMT", AVERAGE: "average without SMT"}
_INTERVALS = "95 % intervals of Pearson x 100 (chance in the choice of pairs, not in the training):\n\n"


def sts_sections(collected: Collected) -> list[Section]:
    """A section for each protocol and for the sub-data sets; those without figures are left out."""
    scored = collected.below("sets")
    official = [info.key for info in select_sets((*BENCHMARKS, "stsb/train"))]
    sets = [name for name in official if name in scored] + [name for name in scored if name not in official]
    sections = [
        _protocol(
            collected,
            "papers",
            "STS 2012-2016, the papers' protocol: Pearson x 100, mean over the sub-data sets of a year",
            (
                "Average: the mean of the five years. The published rows have STS 2013 with its SMT data, which may "
                "not be passed on: where it was not scored, only the columns without SMT have figures, and those "
                "compare with no published column."
            ),
            published.ENGLISH_STS,
        ),
        _protocol(
            collected,
            "sentence-bert",
            "STS 2012-2016, Sentence-BERT's protocol: Spearman x 100 over a year's concatenation, without SMT",
            "All pairs of a year are ranked together. Average: the mean of the five years.",
            published.CONCATENATED_STS,
        ),
        _protocol(
            collected,
            "mteb",
            "STS by mteb's protocol, computed here: Spearman x 100",
            "STS12-16 over a year's concatenation, STS17 by pair of languages, the test part of STS Benchmark.",
            (),
        ),
        _by_year(collected, [name for name in sets if name[:4] in YEARS]),
        _sets(collected, "STS 2017, track by track: Pearson / Spearman x 100", "2017", sets, published.STS_2017),
        _sets(collected, "STS Benchmark: Pearson / Spearman x 100", "stsb", sets, ()),
    ]
    return [section for section in sections if section is not None]


def hard_sts_section(collected: Collected) -> Section | None:
    """The splits of Hard STS; None without figures."""
    splits = collected.below()
    if not splits:
        return None
    from st_paragram.evaluation.sts.hard import SPLITS  # brings torch

    head = ["model", *(f"{split} ({_pairs(collected, split)})" for split in splits)]
    rows = [[model, *(graded(collected.get(model, split)) for split in splits)] for model in collected.models]
    both = zip(published.HARD_STS, published.HARD_STS_NAMED, strict=True)  # the same models, in two tables of the paper
    rows += published_rows([replace(row, scores=row.scores | named.scores) for row, named in both], splits)
    definitions = "\n".join(f"- {split.name}: {split.definition}" for split in SPLITS if split.name in splits)
    about = (
        "Different pairs of STS 2012-2016; in brackets the numbers of those scored here. Published rows have Pearson "
        f"alone. The splits:\n\n{definitions}"
    )
    records = collected.records()
    title = "Hard STS, splits by word error rate and negation: Pearson / Spearman x 100"
    return Section(title, about, [markdown_table(head, rows)], records, [*data_notes(records), *collected.notes])


def protocol_score(collected: Collected, model: str, protocol: str, column: str) -> float | None:
    """A figure of a protocol, as a share; None where there is none."""
    value: float | None = (collected.get(model, PROTOCOLS, protocol) or {}).get(column)
    return value


def average_columns(collected: Collected, protocol: str = "papers") -> dict[str, str]:
    """Heads "2012" .. "2016" and "average" -> the columns of a protocol that all models can be compared by.

    Those without SMT, unless every model that has an average has the one with SMT.
    """
    models = [model for model in _of(collected) if protocol_score(collected, model, protocol, WITHOUT_SMT[AVERAGE])]
    complete = all(protocol_score(collected, model, protocol, AVERAGE) is not None for model in models)
    plain = {name: name for name in (*YEARS, AVERAGE)}
    return plain if complete else plain | WITHOUT_SMT


def _protocol(collected: Collected, protocol: str, title: str, about: str, rows: Sequence[Published]) -> Section | None:
    found = {model: collected.get(model, PROTOCOLS, protocol) or {} for model in _of(collected)}
    columns = list(dict.fromkeys(name for each in found.values() for name, value in each.items() if value is not None))
    if not columns:
        return None
    shown = list(dict.fromkeys(name for row in rows for name in row.scores))
    head = [*shown, *(name for name in columns if name not in shown)]
    ours = [[model, *(_mean(collected, model, name, of.get(name)) for name in head)] for model, of in found.items()]
    table = markdown_table(["model", *head], [*ours, *published_rows(rows, head)])
    records = collected.records(PROTOCOLS, protocol)
    return Section(title, about, [table], records, [*data_notes(records), *collected.notes])


def _mean(collected: Collected, model: str, column: str, value: float | None) -> str:
    """A mean x 100; without one, "constant" if a set that goes into it has no correlation, "-" if sets are missing."""
    if value is not None:
        return hundredths(value)
    year = re.match(r"(?:20|STS)(1[2-6])\b", column)
    if not year and not column.startswith(AVERAGE):
        return MISSING
    years = (f"20{year[1]}",) if year else YEARS
    sets = [collected.get(model, "sets", name) for name in collected.below("sets") if name.startswith(years)]
    return CONSTANT if any(figures is not None and figures.get("pearson") is None for figures in sets) else MISSING


def _by_year(collected: Collected, sets: Sequence[str]) -> Section | None:
    years = [year for year in YEARS if any(name.startswith(year) for name in sets)]
    tables = []
    for year in years:
        names = [name for name in sets if name.startswith(year)]
        head = ["model", *(f"{name.partition('/')[2]} ({_pairs(collected, 'sets', name)})" for name in names)]
        rows = [[model, *(_interval(collected.get(model, "sets", name)) for name in names)] for model in _of(collected)]
        tables.append(f"### STS {year}\n\n" + markdown_table(head, rows))
    title = "STS 2012-2016, every sub-data set: Pearson x 100 (95 % interval)"
    about = "Numbers of pairs in the heads."
    return Section(title, about, tables, collected.records("sets"), collected.notes) if tables else None


def _sets(
    collected: Collected, title: str, benchmark: str, sets: Sequence[str], rows: Sequence[Published]
) -> Section | None:
    keys = {name.partition("/")[2]: name for name in sets if name.startswith(f"{benchmark}/")}
    if not keys:
        return None
    models = [model for model in _of(collected) if any(collected.get(model, "sets", key) for key in keys.values())]
    head = ["model", *(f"{name} ({_pairs(collected, 'sets', key)})" for name, key in keys.items())]
    ours = [[model, *(graded(collected.get(model, "sets", key)) for key in keys.values())] for model in models]
    intervals = [[model, *(_interval(collected.get(model, "sets", key)) for key in keys.values())] for model in models]
    tables = [markdown_table(head, [*ours, *published_rows(rows, list(keys))])]
    tables.append(_INTERVALS + markdown_table(head, intervals))
    found = [record for key in keys.values() for record in collected.records("sets", key)]
    records = [record for index, record in enumerate(found) if record not in found[:index]]
    return Section(title, "Numbers of pairs in the heads.", tables, records, collected.notes)


def _of(collected: Collected) -> list[str]:
    """Models with any scores, and not just a speed."""
    scores = ("sets", PROTOCOLS)
    return [model for model in collected.models if any(place[0] in scores for place in collected.entries[model])]


def _pairs(collected: Collected, *place: str) -> str:
    """The number of pairs; several, if models were scored on different ones."""
    found = [collected.get(model, *place) for model in collected.models]
    return " or ".join(dict.fromkeys(f"{figures['pairs']:,}" for figures in found if figures)) or MISSING


def _interval(figures: Mapping[str, Any] | None) -> str:
    if figures is None:
        return MISSING
    if figures.get("pearson") is None or figures.get("low") is None or figures.get("high") is None:
        return score(figures, "pearson")
    return f"{hundredths(figures['pearson'])} ({hundredths(figures['low'])} to {hundredths(figures['high'])})"
