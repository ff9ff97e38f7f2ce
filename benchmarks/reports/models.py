"""The models of a report and how they were trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.report import number

from reports.sections import Section
from reports.sources import ABLATIONS, BENCHMARKS, short_name
from st_paragram.evaluation.record import Record
from st_paragram.tables import MISSING, markdown_table

_HEAD = ("model", "languages", "pairs", "dim", "vocabulary", "epochs", "M", "training, s", "pairs/s", "machine")


def trainings(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Short name of each model that tells how it was trained -> `TrainingRecord` as a mapping, the newest record's."""
    facts: dict[str, dict[str, Any]] = {}
    for record in sorted(records, key=lambda record: record.date):
        facts.update({short_name(model): values for model, values in record.training.items()})
    return facts


def models_section(records: Sequence[Record]) -> Section | None:
    """One row for each model with training facts; the others are named below. None if there are no models."""
    scored = [record for record in records if record.benchmark != ABLATIONS]
    scored.sort(key=lambda record: BENCHMARKS.index(record.benchmark))  # the order of the first tables
    facts = trainings(scored)
    names = dict.fromkeys(short_name(model) for record in scored for model in record.results)
    if not names:
        return None
    tables = [markdown_table(_HEAD, [_row(name, facts[name]) for name in names if name in facts])] if facts else []
    notes = [_doubt(name, scored) for name in names]
    if unknown := [name for name in names if name not in facts]:
        notes.append(f"Without a record of a training: {', '.join(unknown)}.")
    about = (
        "Vocabulary: pieces asked for. Seconds: wall time with evaluation and checkpoints; pairs/s: while training."
        if facts
        else ""
    )
    return Section("Models", about, tables, notes=[note for note in notes if note])


def _row(name: str, facts: dict[str, Any]) -> tuple[str, ...]:
    settings, preparation = facts.get("settings", {}), facts.get("preparation", {})
    return (
        name,
        ", ".join(dict.fromkeys(facts["languages"])),
        _count(facts.get("pairs")),
        _count(settings.get("dim")),
        _count(preparation.get("vocab_size")),
        f"{settings['epochs']:g}" if "epochs" in settings else MISSING,
        _count(settings.get("megabatch_size")),
        _count(facts.get("seconds")),
        number(facts["pairs_per_second"]) if facts.get("pairs_per_second") else MISSING,
        str(facts.get("machine", MISSING)),
    )


def _count(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"


def _doubt(name: str, records: Sequence[Record]) -> str:
    """A warning if records of one name may be of different models."""
    full = [(model, record.training.get(model)) for record in records for model in record.results]
    same = [(model, facts) for model, facts in full if short_name(model) == name]
    trainings = {(f.get("pairs"), f.get("seconds"), str(f.get("settings"))) for _, f in same if f}
    if len(trainings) > 1:
        return f"{name}: the records are of {len(trainings)} trainings of this name; the table shows the newest."
    if len({model for model, _ in same}) > 1 and not all(facts for _, facts in same):
        return f"{name}: the records have it under different paths, and not all know its training: is it one model?"
    return ""
