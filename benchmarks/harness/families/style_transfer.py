"""Pairs of sentences through a generative model: the meaning of the one, the style of the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from st_paragram import GenerativeEncoder
from st_paragram.core.tables import MISSING, markdown_table
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.families.bgt.generation.generate import transfer
from st_paragram.families.bgt.generation.measures import Measures
from st_paragram.families.bgt.generation.report import Report
from st_paragram.families.bgt.generation.settings import GenerationSettings
from st_paragram.learning.models.directory import load

# Columns are narrow beside sentences; the table of means has the whole names.
_SHORT = ("cosine", "= source", "of source", "length", "first mark", "marks", "= style", "of style")


@dataclass(frozen=True)
class StyleRow:
    """What was written of a pair, and its measures."""

    source: str
    style: str
    output: str
    measures: Measures


@dataclass(frozen=True)
class StyleRun:
    """What a model wrote, with which settings, and the measures' means by their names."""

    model: str
    scorer: str
    settings: GenerationSettings
    rows: list[StyleRow]
    means: dict[str, float]


def run_style_transfer(
    model: str, pairs: str, language: str | None, scorer: str, settings: GenerationSettings
) -> StyleRun:
    """Write a sentence for each pair of a file; pairs with a blank side are left out.

    Raises:
        ParagramError: the file, a model or the language is refused.
    """
    rows = [pair for pair in read_pairs(TextSource((pairs,), ("source", "style"))) if all(map(str.strip, pair))]
    sources, styles = [source for source, _ in rows], [style for _, style in rows]
    outputs = transfer(cast("GenerativeEncoder", load(model)), sources, styles, language, settings)
    report = Report(load(scorer))
    found = report.add(outputs, sources, styles)
    made = [StyleRow(*each) for each in zip(sources, styles, outputs, found, strict=True)]
    return StyleRun(model, scorer, settings, made, report.means())


def style_tables(run: StyleRun) -> list[str]:
    """What was written, and the means."""
    rows = [[row.source, row.style, row.output, *_cells(row.measures)] for row in run.rows]
    means = [[name, f"{value:.3f}"] for name, value in run.means.items()]
    return [
        markdown_table(["source", "style", "output", *_SHORT], rows, left=3),
        markdown_table([f"{run.model}, {len(rows)} pairs", "mean"], means or [["nothing written", MISSING]]),
    ]


def _cells(measures: Measures) -> list[str]:
    return [f"{value:.2f}" for value in measures.titled().values()]
