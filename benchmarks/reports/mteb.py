"""The report's tables of mteb's own runs, and how far our figures by its protocol are from them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from reports.sections import CONSTANT, Section, published_rows
from reports.sources import Collected
from reports.sts import protocol_score
from st_paragram.evaluation import published
from st_paragram.tables import MISSING, hundredths, markdown_table

MAIN_SCORE = "main_score"
_ONLY = "default"  # mteb's name for the subset of a task that has one
_YEARS = tuple(f"STS{year}" for year in range(12, 17))


def mteb_section(collected: Collected, ours: Collected) -> Section | None:
    """Main scores of mteb's runs; tasks with several subsets have a table each. None without figures.

    Args:
        collected: the records of "mteb".
        ours: those of "sts".
    """
    tasks = {task: collected.below(task) for task in collected.below()}
    if not tasks:
        return None
    single = [(task, _ONLY) for task, subsets in tasks.items() if subsets == [_ONLY]]
    tables = [_single(collected, single)] if single else []
    for task, subsets in tasks.items():
        if subsets != [_ONLY]:
            tables.append(f"### {task}\n\n" + _table(collected, task, subsets))
    about = (
        "Main scores x 100 as mteb itself reports them: Spearman for STS, F1 for Tatoeba and BUCC. "
        "Published rows are of mteb's results repository."
    )
    notes = [note for note in (agreement(collected, ours), *collected.notes) if note]
    return Section("mteb's own runs: main scores x 100", about, tables, collected.records(), notes)


def agreement(collected: Collected, ours: Collected) -> str:
    """One sentence on the largest difference between mteb's figures and ours; nothing if none can be compared."""
    found: list[tuple[float, str]] = []
    for model in collected.models:
        for task, subset in collected.entries[model]:
            name = task if subset == _ONLY else f"{task}/{subset}"
            mine, theirs = protocol_score(ours, model, "mteb", name), collected.get(model, task, subset)[MAIN_SCORE]
            if mine is not None and theirs is not None:
                found.append((abs(mine - theirs), f"{model}, {name}"))
    if not found:
        return ""
    difference, where = max(found)
    return (
        f"Our own computation of mteb's STS figures differs by at most {difference:.1e} from mteb's ({where}; "
        f"{len(found)} figures compared, as shares)."
    )


def _single(collected: Collected, tasks: Sequence[tuple[str, str]]) -> str:
    names = [task for task, _ in tasks]
    with_mean = all(year in names for year in _YEARS)
    head = [*names, *(["STS12-16"] if with_mean else [])]
    rows = []
    for model in collected.models:
        scores = {task: _main(collected, model, task, subset) for task, subset in tasks}
        years = [scores.get(year) for year in _YEARS]
        average = mean(year for year in years if year is not None) if with_mean and None not in years else None
        shown = [_shown(collected, model, task, subset) for task, subset in tasks]
        rows.append([model, *shown, *([hundredths(average)] * with_mean)])
    return markdown_table(["model", *head], [*rows, *published_rows(published.STATIC_MODELS, head)])


def _table(collected: Collected, task: str, subsets: Sequence[str]) -> str:
    rows = [[model, *(_shown(collected, model, task, subset) for subset in subsets)]
            for model in collected.models]  # fmt: skip
    theirs = published_rows(published.STATIC_MODELS, [f"{task}/{subset}" for subset in subsets])
    rows = [row for row in rows if set(row[1:]) != {MISSING}]
    return markdown_table(["model", *subsets], [*rows, *theirs])


def _shown(collected: Collected, model: str, task: str, subset: str) -> str:
    value = _main(collected, model, task, subset)
    return CONSTANT if value is None and collected.get(model, task, subset) else hundredths(value)


def _main(collected: Collected, model: str, task: str, subset: str) -> float | None:
    value: float | None = (collected.get(model, task, subset) or {}).get(MAIN_SCORE)
    return value
