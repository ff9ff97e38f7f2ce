"""Precision, recall and F1 on BUCC as Markdown tables, and the published F1."""

from __future__ import annotations

from collections.abc import Iterator

from st_paragram.evaluation.published import BUCC
from st_paragram.evaluation.results import BuccRun, MarginResult
from st_paragram.tables import MISSING, hundredths, markdown_table

HEAD = ("model", "score", "threshold", "extracted", "right", "precision", "recall", "F1")


def bucc_report(run: BuccRun) -> Iterator[str]:
    """A table for each pair of texts and way to choose thresholds, and the published figures, part by part."""
    for key, heading in run.headings.items():
        yield f"## BUCC {heading}; candidates: {run.candidates}; precision, recall, F1 x 100\n"
        rows = [
            [name, score, *_cells(found)]
            for name, result in run.models.items()
            for score, found in result.languages[key].margins.items()
        ]
        yield markdown_table(HEAD, rows) + "\n"
    for row in BUCC:
        yield f"{row.label}: F1 " + ", ".join(f"{pair} {hundredths(f1)}" for pair, f1 in row.scores.items())


def _cells(found: MarginResult) -> list[str]:
    threshold = MISSING if found.threshold is None else f"{found.threshold:.4f}"
    shares = map(hundredths, (found.precision, found.recall, found.f1))
    return [threshold, str(found.extracted), str(found.right), *shares]
