"""Errors on the Tatoeba test sets as Markdown tables beside published rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.tools.evaluation.published import TATOEBA
from st_paragram.tools.evaluation.results import RetrievalScores, TatoebaResult, TatoebaRun

HEAD = (
    "language",
    "pairs",
    "cosine: to English",
    "from English",
    "mean",
    "margin: to",
    "from",
    "mean",
    "accuracy",
    "F1",
)

_READING = (
    "It is an error if the nearest neighbour is not the translation. Accuracy and F1 x 100 are as mteb counts them."
)


def tatoeba_report(run: TatoebaRun) -> Iterator[str]:
    """A table for each model, and one of all beside published rows, part by part."""
    yield "## Tatoeba: errors x 100 of the nearest neighbour\n"
    yield f"{_READING}\n"
    for name, result in run.models.items():
        seconds = "" if result.seconds is None else f"This took {result.seconds:.1f} s.\n\n"
        yield f"### {name}\n\n{seconds}{_table(result)}\n"
    first = next(iter(run.models.values()))
    if shared := [language for language in TATOEBA[0].scores if language in first.languages]:
        yield f"## Tatoeba: mean error x 100 by cosine beside published rows\n\n{_published_table(run, shared)}"


def _table(result: TatoebaResult) -> str:
    scores = result.languages
    rows = [[language, str(row.pairs), *map(hundredths, _figures(row))] for language, row in scores.items()]
    if len(rows) > 1:
        means = (fmean(column) for column in zip(*map(_figures, scores.values()), strict=True))
        rows.append([f"mean of {len(scores)}", str(sum(row.pairs for row in scores.values())), *map(hundredths, means)])
    return markdown_table(HEAD, rows)


def _figures(row: RetrievalScores) -> list[float]:
    """The columns behind the number of pairs."""
    both = (figure for error in (row.cosine, row.margin) for figure in (error.forward, error.backward, error.mean))
    return [*both, row.accuracy, row.f1]


def _published_table(run: TatoebaRun, languages: Sequence[str]) -> str:
    rows = {row.label: [row.scores[language] for language in languages] for row in TATOEBA}
    rows |= {name: [of.languages[key].cosine.mean for key in languages] for name, of in run.models.items()}
    cells = [[name, *map(hundredths, row), hundredths(fmean(row))] for name, row in rows.items()]
    return markdown_table(["model", *languages, "mean"], cells)
