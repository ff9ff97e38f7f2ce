"""The table of ablations: what each choice of the training is worth."""

from __future__ import annotations

import re
from statistics import mean

from harness.families.ablation_results import AblationResult, AblationsRun
from harness.speed.report import number

from reports.sections import CONSTANT, Section, listed
from reports.sources import Collected, shorten
from st_paragram.core.tables import MISSING, markdown_table

BASE = ("base", "default")
_ENGLISH_ALONE = re.compile(r"--lang[ =]en\b")  # in the command: both sides of the pairs are English
PAIRS = "pairs"  # the group of rows that differ in their number
_NAMES = {
    "track5.en-en": "STS 2017 en-en",
    "sts2017-en-en": "STS 2017 en-en",
    "en-dev": "STSb dev",
    "sts-dev": "STSb dev",
    "stsb-dev": "STSb dev",
}


Rows = Collected[AblationResult]


def base_row(collected: Rows) -> str | None:
    """Name of the row that the others are compared with."""
    return next((name for name in BASE if name in collected.results), None)


def score_sets(collected: Rows) -> list[str]:
    """Names of the development pairs, in the order of the runs."""
    return list(dict.fromkeys(s for row in collected.results.values() for run in row.runs for s in run.scores))


def values(row: AblationResult, pairs: str) -> list[float | None]:
    """Pearson of each seed's run that was scored on these pairs; None: the scores were constant."""
    return [run.scores[pairs].pearson for run in row.runs if pairs in run.scores]


def average(scores: list[float | None]) -> float | None:
    """Mean over the seeds; None without any, or if one is constant."""
    found = [value for value in scores if value is not None]
    return mean(found) if found and len(found) == len(scores) else None


def ablations_section(collected: Rows, first: bool = True) -> Section | None:
    """All rows with their groups, the base on top; None if there are none.

    Args:
        collected: rows that were trained and scored on the same.
        first: no section of ablations stands above, so this one says what they are.
    """
    if not collected.results:
        return None
    base, sets = base_row(collected), score_sets(collected)
    names = sorted(collected.results, key=lambda name: name != base)  # the base on top, the others in their order
    head = ["group", "row", "seeds"]
    head += [f"{set_name(name)}{ending}" for name in sets for ending in ("", ": difference")] + ["seconds"]
    return Section(
        "Ablations on development pairs: Pearson x 100",
        _about(collected, first),
        [markdown_table(head, [_cells(collected, name, base, sets) for name in names])],
        collected.records(),
        collected.notes,
    )


def seeds_table(run: AblationsRun) -> str:
    """A row for each row of a run: the mean over its seeds on each set, and the seconds of training."""
    sets = list(run.development)
    held_out = dict.fromkeys(held for row in run.models.values() for one in row.runs for held in one.translations)
    rows = []
    for name, row in run.models.items():
        seconds = mean(run.seconds for run in row.runs if run.seconds is not None)
        found = [_spread([run.translations.get(held) for run in row.runs]) for held in held_out]
        rows.append([name, *(_spread(values(row, pairs)) for pairs in sets), *found, f"{seconds:.0f}"])
    return markdown_table(["row", *sets, *(f"{held}, found" for held in held_out), "seconds"], rows)


def set_name(name: str) -> str:
    """The name of development pairs as people know them."""
    return _NAMES.get(name, name)


def pairs_of_runs(collected: Rows, name: str) -> int | None:
    """Number of pairs that a row was trained on, if its runs or its changes tell, and it is of the group "pairs".

    The base counts too: it has them all.
    """
    row = collected.results[name]
    if name != base_row(collected) and row.group != PAIRS:
        return None
    told = [run.pairs for run in row.runs if run.pairs]
    found: int | None = told[0] if told else row.overrides.get("pairs")
    return found


def _about(collected: Rows, first: bool) -> str:
    records, base = collected.records(), base_row(collected)
    what = "An ablation trains again with one choice changed, to see what that choice is worth."
    if not first:
        english = all(_ENGLISH_ALONE.search(record.command) for record in records)
        what = f"The same for {'paraphrases' if english else 'other pairs'}."
    texts = list(dict.fromkeys(shorten(text) for record in records for text in record.run.text))
    trained = f" All rows were trained on {listed(texts)}." if texts else ""
    changed = f" Each differs from the row *{base}* only in what its name says." if base else ""
    compared = f" The difference is that to *{base}* with the same seed." if base else ""
    return (
        f"{what}{trained}{changed}\n"
        f"Scores are the mean over the seeds (lowest - highest).{compared} *Seconds* are the mean time of training."
    )


def _cells(collected: Rows, name: str, base: str | None, sets: list[str]) -> list[str]:
    row = collected.results[name]
    cells = [row.group, name, ", ".join(str(run.seed) for run in row.runs) or MISSING]
    for pairs in sets:
        cells.append(_spread(values(row, pairs)))
        compared = None if base in (None, name) else collected.results[str(base)]
        cells.append(_difference(row, compared, pairs) if compared else MISSING)
    seconds = [run.seconds for run in row.runs if run.seconds is not None]
    return [*cells, number(mean(seconds)) if seconds else MISSING]


def _difference(row: AblationResult, base: AblationResult, pairs: str) -> str:
    """Of the runs that both rows have with one seed: seeds move a row and its base alike."""
    of_row, of_base = ({run.seed: run.scores.get(pairs) for run in each.runs} for each in (row, base))
    both = [(of_row[seed], of_base[seed]) for seed in of_row if seed in of_base]
    found = [
        100 * (ours.pearson - theirs.pearson)
        for ours, theirs in both
        if ours and theirs and ours.pearson is not None and theirs.pearson is not None
    ]
    if not found or len(found) < len(both):
        return MISSING
    middle, low, high = (f"{round(value, 1) + 0.0:+.1f}" for value in (mean(found), min(found), max(found)))  # no -0.0
    return f"{middle} ({low} .. {high})"


def _spread(scores: list[float | None]) -> str:
    found = [100 * value for value in scores if value is not None]
    if len(found) < len(scores):
        return CONSTANT
    return f"{mean(found):.1f} ({min(found):.1f} - {max(found):.1f})" if found else MISSING
