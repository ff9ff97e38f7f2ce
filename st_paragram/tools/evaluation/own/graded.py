"""Graded pairs of the user's: how well cosines follow scores of similarity, on whatever scale these are.

The score is in the first, the second or the third column: the one that has a number in every row. Where several
have, it is the first of them. A first row that alone has no number there holds the names of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from st_paragram.core.text.tables import read_columns
from st_paragram.core.words import counted
from st_paragram.errors import TextError, short
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.bootstrap import resampled_pearson
from st_paragram.tools.evaluation.correlation import correlation, cosines
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.own.resampling import Floats, resampled_spearman, resamples_for
from st_paragram.tools.evaluation.own.results import SEED, OwnRun, Sample, report_of, results_of
from st_paragram.tools.evaluation.retrieval_files import cells_of

PEARSON, SPEARMAN = "Pearson", "Spearman"


@dataclass(frozen=True)
class OwnGradedRun(OwnRun):
    """Models on graded pairs."""

    benchmark: ClassVar[str] = "own-graded"


RUN = OwnGradedRun


def read_own_graded(path: str | Path, columns: Sequence[str] = ()) -> tuple[GradedPairs, tuple[str, ...]]:
    """Read rows of a score and two sentences, plain or compressed, or such columns of a table.

    Returns:
        The pairs, and what is odd, in words.

    Raises:
        TextError: the file cannot be read, has fewer than two pairs or one score alone, or (with file and row) a row
            has other than three columns, an empty sentence, or a score that is not a finite number.
    """
    path, notes = Path(path), tuple[str, ...]()
    rows = list(_table_rows(path, columns) if columns else cells_of(path, 3, 3))
    numbers = [[_number(cells[column]) for _, cells in rows] for column in range(3)]
    at = max(range(3), key=lambda column: sum(value is not None for value in numbers[column]))
    scores = numbers[at]
    if scores[0] is None and None not in scores[1:] and len(rows) > 1:
        notes = (f"{path}: the first row has no number in column {at + 1}, and counts as the names of the columns",)
        rows, scores = rows[1:], scores[1:]
    found = GradedPairs(str(path), [], [], [])
    for (number, cells), score in zip(rows, scores, strict=True):
        texts = [cell for column, cell in enumerate(cells) if column != at]
        if score is None or not math.isfinite(score):
            advice = "give one score and two sentences in each row"
            raise TextError(f"{path}: row {number}: column {at + 1} has {short(cells[at])}, not a score; {advice}")
        if not all(text.strip() for text in texts):
            raise TextError(f"{path}: row {number}: an empty sentence; complete the row or take it out")
        found.grades.append(score)
        found.first.append(texts[0])
        found.second.append(texts[1])
    if len(set(found.grades)) < 2:
        raise TextError(f"{path}: {counted(len(found), 'pair')} of one score; a correlation needs different scores")
    return found, notes


def run(request: Request) -> OwnGradedRun:
    """Score models on the user's graded pairs; errors as of `read_own_graded`, `cosines` and `score_each`."""
    read = [read_own_graded(path, request.columns) for path in dict.fromkeys(request.graded)]
    files = [pairs for pairs, _ in read]
    found = score_each(request.models, lambda model: [cosines(model, file) for file in files], request.untrained)
    samples = {
        file.name: _samples({model: scores[number] for model, scores in found.items()}, np.array(file.grades))
        for number, file in enumerate(files)
    }
    return OwnGradedRun(
        results_of(samples, (PEARSON, SPEARMAN)),
        {file.name: f"{len(file):,} pairs" for file in files},
        tuple(note for _, notes in read for note in notes),
        {file.name: resamples_for(len(file)) for file in files},
    )


def report(found: OwnGradedRun) -> Iterator[str]:
    """Tables, part by part."""
    reading = "A model that gives all pairs the same cosine has no correlation."
    yield from report_of(found, "Your graded pairs: correlation of cosines with scores", reading)


def _table_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield number and cells of every row of a table, in which the score may be a number."""
    for number, (*texts, value) in enumerate(read_columns(str(path), columns[1:], others=columns[:1]), 1):
        score = str(value) if isinstance(value, str | float) or type(value) is int else short(value)
        yield number, (score, *texts)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _samples(scores: dict[str, Floats], grades: Floats) -> dict[str, dict[str, Sample]]:
    """Both correlations of all models, on the same resamples."""
    count, made = resamples_for(len(grades)), dict[str, dict[str, Sample]]()
    pearson = resampled_pearson(np.stack(list(scores.values())), grades, count, SEED)
    for (model, of), resampled in zip(scores.items(), pearson, strict=True):
        whole = correlation(of, grades)
        made[model] = {
            PEARSON: Sample(whole.pearson, resampled),
            SPEARMAN: Sample(whole.spearman, resampled_spearman(of, grades, count, SEED)),
        }
    return made
