"""Precision, recall and F1 on BUCC as Markdown tables, and the published F1."""

from __future__ import annotations

from collections.abc import Iterator

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.published import BUCC
from st_paragram.tools.evaluation.results import BuccRun, MarginResult

HEAD = ("model", "score", "threshold", "extracted", "right", "precision", "recall", "F1")

_READING = "Precision, recall and F1 are times 100. Candidate pairs were put forward by the rule *{}*."


def bucc_report(run: BuccRun) -> Iterator[str]:
    """A table for each pair of texts and way to choose thresholds, and the published figures, part by part."""
    for key, heading in run.headings.items():
        yield f"## BUCC {heading}\n\n{_READING.format(run.candidates)}\n"
        rows = [
            [name, score, *_cells(found)]
            for name, result in run.models.items()
            for score, found in result.languages[key].margins.items()
        ]
        yield markdown_table(HEAD, rows) + "\n"
    for row in BUCC:
        figures = " and ".join(f"{hundredths(f1)} on {pair}" for pair, f1 in row.scores.items())
        yield f"{row.label} has an F1 of {figures}."


def _cells(found: MarginResult) -> list[str]:
    threshold = MISSING if found.threshold is None else f"{found.threshold:.4f}"
    shares = map(hundredths, (found.precision, found.recall, found.f1))
    return [threshold, str(found.extracted), str(found.right), *shares]
