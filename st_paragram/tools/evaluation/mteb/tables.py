"""mteb's scores as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterator

from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.tools.evaluation.results import MtebRun, MtebScores

MAIN_SCORE = "main_score"
_READING = "These are mteb's scores x 100. The main score is Spearman's correlation of STS, and F1 of Tatoeba and BUCC."
_SHOWN = ("cosine_spearman", "cosine_pearson", "f1", "accuracy")


def mteb_report(run: MtebRun) -> Iterator[str]:
    """A row for each task, subset and metric; where there are several subsets, their mean after them. Then notes."""
    yield f"{_READING}\n"
    models = list(run.models.values())
    rows = []
    for task, subsets in models[0].tasks.items():
        for metric in _metrics(next(iter(subsets.values()))):
            columns = [[_value(scores, metric) for scores in of.tasks[task].values()] for of in models]
            for subset, values in zip(subsets, zip(*columns, strict=True), strict=True):
                rows.append([task, subset, metric, *map(hundredths, values)])
            if len(subsets) > 1:
                rows.append(
                    [task, f"mean of {len(subsets)}", metric, *(hundredths(_mean(column)) for column in columns)]
                )
    yield markdown_table(["task", "subset", "metric", *run.models], rows)
    if run.notes:
        yield "\n" + "\n".join(f"- {note}" for note in run.notes)


def _metrics(scores: MtebScores) -> list[str]:
    return [metric for metric in _SHOWN if metric in scores.metrics] or [MAIN_SCORE]


def _value(scores: MtebScores, metric: str) -> float | None:
    return scores.main_score if metric == MAIN_SCORE else scores.metrics[metric]


def _mean(values: list[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if len(found) == len(values) else None
