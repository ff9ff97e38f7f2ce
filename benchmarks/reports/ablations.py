"""The table of ablations: what each choice of the training is worth."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from harness.report import number

from reports.sections import CONSTANT, Section
from reports.sources import Collected, shorten
from st_paragram.tables import MISSING, markdown_table

BASE = ("base", "default")
PAIRS = "pairs"  # the group of rows that differ in their number
_NAMES = {
    "track5.en-en": "STS 2017 en-en",
    "sts2017-en-en": "STS 2017 en-en",
    "en-dev": "STSb dev",
    "sts-dev": "STSb dev",
    "stsb-dev": "STSb dev",
}


def base_row(collected: Collected) -> str | None:
    """Name of the row that the others are compared with."""
    return next((name for name in BASE if name in collected.entries), None)


def score_sets(collected: Collected) -> list[str]:
    """Names of the development pairs, in the order of the runs."""
    return list(dict.fromkeys(s for row in collected.models for run in _runs(collected, row) for s in run["scores"]))


def values(collected: Collected, row: str, pairs: str) -> list[float | None]:
    """Pearson of each seed's run that was scored on these pairs; None: the scores were constant."""
    return [run["scores"][pairs].get("pearson") for run in _runs(collected, row) if pairs in run["scores"]]


def average(scores: list[float | None]) -> float | None:
    """Mean over the seeds; None without any, or if one is constant."""
    found = [value for value in scores if value is not None]
    return mean(found) if found and len(found) == len(scores) else None


def ablations_section(collected: Collected) -> Section | None:
    """All rows with their groups, the base on top; None if there are none."""
    if not collected.models:
        return None
    base, sets = base_row(collected), score_sets(collected)
    rows = sorted(collected.models, key=lambda row: row != base)  # the base on top, the others in their order
    head = ["group", "row", "seeds"]
    head += [f"{set_name(name)}{ending}" for name in sets for ending in ("", ": difference")] + ["seconds"]
    compared = (
        f" Difference: to the row {base} with the same seed, from which a row differs in what its name says alone."
        if base
        else ""
    )
    return Section(
        "Ablations on development pairs: Pearson x 100",
        f"{_texts(collected)}Mean over the seeds (lowest - highest); seconds: of training, the mean.{compared}",
        [markdown_table(head, [_cells(collected, row, base, sets) for row in rows])],
        collected.records(),
        collected.notes,
    )


def set_name(name: str) -> str:
    """The name of development pairs as people know them."""
    return _NAMES.get(name, name)


def pairs_of_runs(collected: Collected, row: str) -> int | None:
    """Number of pairs that a row was trained on, if its runs or its changes tell, and it is of the group "pairs".

    The base counts too: it has them all.
    """
    value = collected.get(row)
    if row != base_row(collected) and value["group"] != PAIRS:
        return None
    told = [run["pairs"] for run in value["runs"] if run.get("pairs")]
    found: int | None = told[0] if told else value["overrides"].get("pairs")
    return found


def _runs(collected: Collected, row: str) -> list[dict[str, Any]]:
    value: Mapping[str, Any] = collected.get(row)
    return list(value["runs"])


def _texts(collected: Collected) -> str:
    texts = dict.fromkeys(shorten(str(text)) for record in collected.records() for text in record.data.get("text", ()))
    return f"Trained on {', '.join(texts)}. " if texts else ""


def _cells(collected: Collected, row: str, base: str | None, sets: list[str]) -> list[str]:
    runs = _runs(collected, row)
    cells = [str(collected.get(row)["group"]), row, ", ".join(str(run["seed"]) for run in runs) or MISSING]
    for pairs in sets:
        cells.append(_spread(values(collected, row, pairs)))
        cells.append(MISSING if base is None or row == base else _difference(collected, row, base, pairs))
    seconds = [run["seconds"] for run in runs if run.get("seconds") is not None]
    return [*cells, number(mean(seconds)) if seconds else MISSING]


def _difference(collected: Collected, row: str, base: str, pairs: str) -> str:
    """Of the runs that both rows have with one seed: seeds move a row and its base alike."""
    of_base = {run["seed"]: run["scores"].get(pairs, {}).get("pearson") for run in _runs(collected, base)}
    both = [
        (run["scores"].get(pairs, {}).get("pearson"), of_base[run["seed"]])
        for run in _runs(collected, row)
        if run["seed"] in of_base
    ]
    found = [100 * (ours - theirs) for ours, theirs in both if None not in (ours, theirs)]
    if not found or len(found) < len(both):
        return MISSING
    middle, low, high = (f"{round(value, 1) + 0.0:+.1f}" for value in (mean(found), min(found), max(found)))  # no -0.0
    return f"{middle} ({low} .. {high})"


def _spread(scores: list[float | None]) -> str:
    found = [100 * value for value in scores if value is not None]
    if len(found) < len(scores):
        return CONSTANT
    return f"{mean(found):.1f} ({min(found):.1f} - {max(found):.1f})" if found else MISSING
