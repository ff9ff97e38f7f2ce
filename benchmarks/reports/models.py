"""The models of a report and how they were trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.families.ablation_results import AblationsRun
from harness.speed.report import number

from reports.sections import Section, listed
from reports.sources import KINDS, short_name
from st_paragram.core.tables import MISSING, markdown_table
from st_paragram.tools.evaluation.record import Record, Training

_UNTRAINED = "untrained"  # what benchmarks call it
_ABOUT = (
    "*Vocabulary* is the number of pieces that was asked for. "
    "*M* is the largest number of batches in a mega-batch, in which hard negatives are sought.\n"
    "*Seconds* are wall time with evaluation and checkpoints; *pairs/s* is the rate while training."
)
_HEAD = ("model", "languages", "pairs", "dim", "vocabulary", "epochs", "M", "training, s", "pairs/s", "machine")


def trainings(records: Sequence[Record[Any]]) -> dict[str, Training]:
    """Short name of each model that tells how it was trained -> its training, by the newest record."""
    found: dict[str, Training] = {}
    for record in sorted(records, key=lambda record: record.date):
        found.update({short_name(model): training for model, training in record.training.items()})
    return found


def models_section(records: Sequence[Record[Any]]) -> Section | None:
    """One row for each model whose training is known; the others are named below. None if there are no models."""
    scored = [record for record in records if not isinstance(record.run, AblationsRun)]
    scored.sort(key=lambda record: list(KINDS).index(record.benchmark))  # the order of the first tables
    known = trainings(scored)
    names = dict.fromkeys(short_name(model) for record in scored for model in record.run.models)
    if not names:
        return None
    tables = [markdown_table(_HEAD, [_row(name, known[name]) for name in names if name in known])] if known else []
    notes = [_doubt(name, scored) for name in names]
    if unknown := [name for name in names if name not in known]:
        notes.append(_without_record(unknown, bool(known)))
    return Section("Models", _ABOUT if known else "", tables, notes=[note for note in notes if note])


def _without_record(names: Sequence[str], others: bool) -> str:
    """Sentences on models of which no training is known; `others` are in the table."""
    one = len(names) == 1
    models, have = ("The model", "has") if one else ("The models", "have")
    where = ", which the tables below have too," if others else ""
    told = f"{models} {listed([f'*{name}*' for name in names])}{where} {have} no record of a training."
    if _UNTRAINED not in names:
        return told
    subject = "It" if one else f"The model *{_UNTRAINED}*"
    return f"{told} {subject} is a random table, and shows what a model knows without training."


def _row(name: str, training: Training) -> tuple[str, ...]:
    return (
        name,
        ", ".join(dict.fromkeys(training.languages)),
        _count(training.pairs),
        _count(training.dim),
        _count(training.vocab_size),
        MISSING if training.epochs is None else f"{training.epochs:g}",
        _count(training.megabatch_size),
        _count(training.seconds),
        number(training.pairs_per_second) if training.pairs_per_second else MISSING,
        training.machine,
    )


def _count(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"


def _doubt(name: str, records: Sequence[Record[Any]]) -> str:
    """A warning if records of one name may be of different models."""
    every = [(model, record.training.get(model)) for record in records for model in record.run.models]
    same = [(model, training) for model, training in every if short_name(model) == name]
    different = {(one.pairs, one.seconds, str(one.settings)) for _, one in same if one}
    if len(different) > 1:
        return f"{name}: the records are of {len(different)} training runs of this name; the table shows the newest."
    if len({model for model, _ in same}) > 1 and not all(training for _, training in same):
        return f"{name}: the records have it under different paths, and not all know its training: is it one model?"
    return ""
