"""Tables of probing: accuracy of every model on every task, the tasks, and the paper's own rows on its own sets."""

from __future__ import annotations

from harness.quality.probing import ProbeScore, ProbingRun

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.published import Source

_COLUMNS = (
    "subject number",
    "object number",
    "tree depth",
    "top constituent",
    "word content",
    "sentence length",
    "punctuation count",
    "first punctuation",
    "gender",
)
# EMNLP 2020's accuracy x 100 of embeddings of models trained on English with another language.
_PUBLISHED = """
BilingualTrans, fr: 78.0 76.5 28.2 65.9 80.2 74.0 56.9 88.3 53.0
BGT semantic encoder, fr: 84.6 80.9 29.7 70.5 77.4 73.0 60.7 87.9 52.6
BGT English language encoder, fr: 75.2 72.0 28.0 63.6 65.4 80.2 65.3 92.2 -
BGT French language encoder, fr: - - - - - - - - 56.5
BilingualTrans, es: 84.5 82.1 29.7 68.5 79.2 77.7 63.4 90.1 54.3
BGT semantic encoder, es: 85.7 83.6 32.5 71.0 77.3 76.7 63.1 89.9 52.6
BGT English language encoder, es: 75.7 73.7 29.1 63.9 63.3 80.2 64.2 92.7 -
BGT Spanish language encoder, es: - - - - - - - - 54.7
"""


def probing_tables(run: ProbingRun, published: bool = True) -> list[str]:
    """Markdown parts: what is measured, accuracies, the tasks, notes, and perhaps what the paper printed."""
    parts = [
        "Figures are accuracy x 100 on the test split. Brackets have Wilson's 95 % interval.",
        _scores(run),
        "The tasks have these numbers of labels, and of sentences in each split.",
        _tasks(run),
    ]
    if run.notes:
        parts.append("\n".join(f"- {note}." for note in run.notes))
    if published:
        about = (
            f"These figures are published ({Source.BGT.value}). They were measured on the paper's own sets, "
            "so they cannot be compared with those above."
        )
        parts += [about, published_table()]
    return parts


def published_table() -> str:
    """The rows of the paper for the models trained with French and with Spanish."""
    lines = [line.partition(": ") for line in _PUBLISHED.strip().split("\n")]
    rows = [[f"*{name}*", *(_slanted(cell) for cell in cells.split())] for name, _, cells in lines]
    return markdown_table(["published", *_COLUMNS], rows)


def _scores(run: ProbingRun) -> str:
    majority = ["majority label", *(_cell(task.majority) for task in run.tasks.values())]
    rows = [[name, *(_cell(scores[title]) for title in run.tasks)] for name, scores in run.models.items()]
    return markdown_table(["model", *run.tasks], [majority, *rows])


def _tasks(run: ProbingRun) -> str:
    rows = [
        [title, *(f"{number:,}" for number in (task.labels, task.train, task.valid, task.test))]
        for title, task in run.tasks.items()
    ]
    return markdown_table(["task", "labels", "train", "valid", "test"], rows)


def _cell(score: ProbeScore) -> str:
    ends = score.interval
    return f"{hundredths(score.accuracy)} ({hundredths(ends.low)} - {hundredths(ends.high)})"


def _slanted(cell: str) -> str:
    return MISSING if cell == MISSING else f"*{cell}*"
