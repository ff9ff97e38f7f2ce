"""Tables of the model card: data, settings and scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from st_paragram.core.encoding.training_record import Score, TrainingRecord
from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.core.value_words import in_words

_OF_BLSTM = ("hidden_dim", "scramble")


def training_parts(record: TrainingRecord) -> dict[str, object]:
    """The parts of the card on data, settings and scores, by the names of their places in the card."""
    init = record.settings.get("init")
    return {
        "tasks": _tasks(record),
        "preparation": markdown_table(("preparation", "value"), _preparation(record), left=2)
        if record.preparation
        else "",
        "beginning": f"\nThe training began with the weights of `{_cell(init)}`.\n" if init else "",
        "settings": _values_table("setting", _settings(record)),
        "seconds": record.seconds,
        "rate": record.pairs_per_second,
        "machine": record.machine,
        "scores": markdown_table(
            ("pairs", "model", "Pearson", "Spearman"), [_score_row(score) for score in record.scores]
        ),
        "translations": _translations(record),
    }


def _values_table(of: str, rows: list[tuple[str, ...]]) -> str:
    return markdown_table((of, "value"), rows, left=2)


def _score_row(score: Score) -> tuple[str, ...]:
    found = score.correlation
    return f"{score.data} ({score.pairs})", score.model, hundredths(found.pearson), hundredths(found.spearman)


def _translations(record: TrainingRecord) -> str:
    if not record.translations:
        return ""
    rows = [(f"{s.data} ({s.pairs})", s.model, hundredths(s.accuracy)) for s in record.translations]
    table = markdown_table(("translations", "model", "accuracy"), rows)
    return f"\nHeld-out translations found by nearest neighbour, mean of both directions, x 100.\n\n{table}\n"


def source_table(record: TrainingRecord) -> str:
    """The texts that were prepared, where the record's report tells of them; else empty."""
    report = record.preparation.get("report")
    told = report.get("sources") if isinstance(report, Mapping) else None
    if not isinstance(told, list) or not all(isinstance(one, Mapping) for one in told) or not told:
        return ""
    keys = ("name", "languages", "dropped", "rows", "kept")
    rows = [tuple(_cell(one.get(key)) for key in keys) for one in told]
    return f"\n{markdown_table(('text', 'languages', 'left out', 'pairs', 'kept'), rows, left=3)}\n"


def _tasks(record: TrainingRecord) -> str:
    """The other tasks' data, if there is any."""
    if not record.tasks:
        return ""
    rows = [(name, f"{count:,}") for name, count in record.tasks.items()]
    return f"\n{markdown_table(('task', 'pairs'), rows)}\n"


def _preparation(record: TrainingRecord) -> list[tuple[str, ...]]:
    """Rows of the settings; where the size of the vocabulary was left to the number of pairs, the size it has."""
    values = dict(record.preparation)
    if values.get("vocab_size", 0) is None:
        values["vocab_size"] = f"{values['report']['vocabulary_size']} (by the number of pairs)"
    return _simple(values)


def _settings(record: TrainingRecord) -> list[tuple[str, ...]]:
    """Rows of the settings that the encoder knows."""
    others = () if record.settings.get("encoder") == "blstm" else _OF_BLSTM
    return _simple({name: value for name, value in record.settings.items() if name not in others})


def _simple(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows of the plain values; nested reports stay in the store."""
    return [(name, _cell(value)) for name, value in values.items() if not isinstance(value, Mapping)]


def _cell(value: object) -> str:
    """A value as a card shows it: what names a file of the machine that trained is cut down to its last part."""
    text = str(value) if isinstance(value, str | int | float) else in_words(value)
    return PurePath(text).name if isinstance(value, str) and Path(text).is_absolute() else text
