"""The report's tables of mteb's own runs, and how far our figures by its protocol are from them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from reports.sections import CONSTANT, Section, published_rows
from reports.sources import Collected
from reports.sts import Protocol, protocol_score
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.results import MtebResult, MtebScores, StsResult
from st_paragram.tools.evaluation.sts.benchmark import STATIC_MODELS

_ONLY = "default"  # mteb's name for the subset of a task that has one
_YEARS = tuple(f"STS{year}" for year in range(12, 17))


def mteb_section(collected: Collected[MtebResult], ours: Collected[StsResult]) -> Section | None:
    """Main scores of mteb's runs; tasks with several subsets have a table each. None without figures.

    Args:
        collected: the records of "mteb".
        ours: those of "sts".
    """
    tasks: dict[str, list[str]] = {}
    for result in collected.results.values():
        for task, found in result.tasks.items():
            tasks[task] = list(dict.fromkeys([*tasks.get(task, ()), *found]))
    if not tasks:
        return None
    single = [task for task, subsets in tasks.items() if subsets == [_ONLY]]
    tables = [_single(collected, single)] if single else []
    for task, subsets in tasks.items():
        if task not in single:
            tables.append(f"### {task}\n\n" + _table(collected, task, subsets))
    about = (
        "These are the main scores as [mteb](../../../docs/evaluation.md#mteb), a benchmark of embeddings, reports "
        "them itself: "
        "Spearman for STS, F1 for Tatoeba and BUCC.\nPublished rows are from mteb's repository of results."
    )
    notes = [note for note in (agreement(collected, ours), *collected.notes) if note]
    return Section("mteb's own runs: main scores x 100", about, tables, collected.records(), notes)


def agreement(collected: Collected[MtebResult], ours: Collected[StsResult]) -> str:
    """One sentence on the largest difference between mteb's figures and ours; nothing if none can be compared."""
    found: list[tuple[float, str]] = []
    for model, result in collected.results.items():
        for task, subsets in result.tasks.items():
            for subset, scores in subsets.items():
                name = task if subset == _ONLY else f"{task}/{subset}"
                mine, theirs = protocol_score(ours, model, Protocol.MTEB, name), scores.main_score
                if mine is not None and theirs is not None:
                    found.append((abs(mine - theirs), f"{model}, {name}"))
    if not found:
        return ""
    difference, where = max(found)
    return (
        f"Our own computation of mteb's STS figures differs by at most {difference:.1e} from mteb's ({where}; "
        f"{len(found)} figures compared, as shares)."
    )


def _single(collected: Collected[MtebResult], tasks: Sequence[str]) -> str:
    with_mean = all(year in tasks for year in _YEARS)
    head = [*tasks, *(["STS12-16"] if with_mean else [])]
    rows = []
    for model, result in collected.results.items():
        found = [_scores(result, task, _ONLY) for task in tasks]
        years = [scores.main_score for year in _YEARS if (scores := _scores(result, year, _ONLY))]
        known = [year for year in years if year is not None]
        average = mean(known) if with_mean and len(known) == len(_YEARS) else None
        rows.append([model, *map(_shown, found), *([hundredths(average)] * with_mean)])
    return markdown_table(["model", *head], [*rows, *published_rows(STATIC_MODELS, head)])


def _table(collected: Collected[MtebResult], task: str, subsets: Sequence[str]) -> str:
    rows = [
        [model, *(_shown(_scores(result, task, subset)) for subset in subsets)]
        for model, result in collected.results.items()
    ]
    theirs = published_rows(STATIC_MODELS, [f"{task}/{subset}" for subset in subsets])
    rows = [row for row in rows if set(row[1:]) != {MISSING}]
    return markdown_table(["model", *subsets], [*rows, *theirs])


def _scores(result: MtebResult, task: str, subset: str) -> MtebScores | None:
    return result.tasks.get(task, {}).get(subset)


def _shown(scores: MtebScores | None) -> str:
    return CONSTANT if scores and scores.main_score is None else hundredths(scores.main_score if scores else None)
