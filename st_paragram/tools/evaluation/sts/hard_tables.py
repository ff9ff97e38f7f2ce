"""Scores on Hard STS as Markdown tables beside the paper's rows."""

from __future__ import annotations

from collections.abc import Iterator

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.published import HARD_STS, HARD_STS_NAMED, HARD_STS_PAIRS
from st_paragram.tools.evaluation.results import HardStsResult, HardStsRun
from st_paragram.tools.evaluation.sts.hard import SPLITS


def hard_sts_report(run: HardStsRun) -> Iterator[str]:
    """What the splits are, how models do on them, and notes, part by part."""
    sizes = {name: of.pairs for name, of in next(iter(run.models.values())).splits.items()}
    splits = [split for split in SPLITS if split.name in sizes]
    counts = [[s.name, s.definition, f"{sizes[s.name]:,}", _paper_count(s.name)] for s in splits]
    yield "## Hard STS: which pairs\n"
    yield "SWER is the symmetric word error rate of the two sentences. Gold is their grade, from 0 to 5.\n"
    yield markdown_table(("split", "definition", "pairs", "pairs in the paper"), counts)
    yield "\n## Hard STS: Pearson / Spearman x 100\n"
    rows = [[name, *_cells(result)] for name, result in run.models.items()]
    yield markdown_table(("model", *sizes), [*rows, *_published_rows(list(sizes))]) + "\n"
    yield from (f"- {note}" for note in run.notes)


def _paper_count(name: str) -> str:
    return f"{HARD_STS_PAIRS[name]:,}" if name in HARD_STS_PAIRS else MISSING


def _cells(result: HardStsResult) -> list[str]:
    return [f"{hundredths(of.pearson)} / {hundredths(of.spearman)}" for of in result.splits.values()]


def _published_rows(splits: list[str]) -> list[list[str]]:
    """One row a model: the paper has the two splits with names and those of its appendix in two tables."""
    scores: dict[str, dict[str, float]] = {}
    for row in (*HARD_STS, *HARD_STS_NAMED):
        scores[row.label] = scores.get(row.label, {}) | row.scores
    return [[label, *(hundredths(found.get(split)) for split in splits)] for label, found in scores.items()]
