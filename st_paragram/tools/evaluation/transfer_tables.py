"""Transfer tasks and inference as Markdown tables, beside published rows where there are any."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.families.muse.nli import NliRun
from st_paragram.tools.evaluation.published import TRANSFER
from st_paragram.tools.evaluation.transfer import TransferRun

_MAJORITY = "The row *majority* is what the most frequent label alone would reach."


def transfer_report(run: TransferRun) -> Iterator[str]:
    """One table of published rows, the majority and all models."""
    tasks = list(run.majority)
    rows: dict[str, list[float | None]] = {row.label: [row.scores.get(task) for task in tasks] for row in TRANSFER}
    rows["majority"] = list(run.majority.values())
    rows |= {name: [result.tasks[task].accuracy for task in tasks] for name, result in run.models.items()}
    cells = [[name, *map(hundredths, figures), _mean(figures)] for name, figures in rows.items()]
    yield "## Transfer: accuracy x 100 of a logistic regression on frozen embeddings\n"
    yield f"{_MAJORITY}\n"
    yield markdown_table(["model", *tasks, "mean"], cells)
    known = {name: result.seconds for name, result in run.models.items() if result.seconds is not None}
    if known:
        yield f"\nThis took {', '.join(f'{seconds:.0f} s for {name}' for name, seconds in known.items())}."


def nli_report(run: NliRun) -> Iterator[str]:
    """One table of the majority and all models, and a line on those that were left out."""
    sets = list(run.pairs)
    rows = {"majority": list(run.majority.values())}
    rows |= {name: [result.sets[each] for each in sets] for name, result in run.models.items()}
    cells = [[name, *map(hundredths, figures), hundredths(fmean(figures))] for name, figures in rows.items()]
    yield "## Inference: accuracy x 100 of the model's own classifier\n"
    yield f"{_MAJORITY}\n"
    yield markdown_table(["model", *sets, "mean"], cells)
    if run.left_out:
        yield f"\nModels without a classifier, not trained on inference, were left out: {', '.join(run.left_out)}."


def _mean(figures: list[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    return hundredths(fmean(known)) if len(known) == len(figures) else MISSING
