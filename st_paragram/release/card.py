"""The card of a released model: that of its training, with licence, sources and scores, for people and the hub."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from st_paragram.core.encoding.directory import TRAINING_FILE, read_configuration, table_note
from st_paragram.core.encoding.record import read_training_record
from st_paragram.core.encoding.table import TableType
from st_paragram.core.tables import markdown_table
from st_paragram.errors import ModelDirectoryError
from st_paragram.hub.scores import TestResult, score_entries, score_section
from st_paragram.learning.models.card import blocks, from_record, render
from st_paragram.release.plan import ModelPlan
from st_paragram.tools.evaluation.results import StsResult
from st_paragram.tools.evaluation.tatoeba import TatoebaResult

_SOURCES = "What it was trained on, before preparation, and under which licence each source is offered."


def release_card(
    folder: Path, each: ModelPlan, sts: StsResult | None = None, tatoeba: TatoebaResult | None = None
) -> str:
    """The card of a model or of a smaller copy.

    Args:
        folder: its directory, named as it is.
        each: what the model was built from.
        sts: its scores, if it was scored.
        tatoeba: the same.

    Raises:
        ModelDirectoryError: the directory has no record of a training run.
    """
    record = read_training_record(folder)
    if record is None:
        raise ModelDirectoryError(f"{folder / TRAINING_FILE}: missing; remove {folder}, and make the release again")
    values = read_configuration(folder).values
    results: list[TestResult] = [result for result in (sts, tatoeba) if result]
    card = from_record(
        replace(record, name=folder.name), values["embedding_dimension"], each.model.licence, sources=False
    )
    copy = "" if folder.name == each.name else f"A smaller copy of {each.name}: its first components, rounded."
    scores = [score_section(results)] if results else []
    released = replace(
        card,
        stock=card.stock and values["table_type"] != TableType.INT4.value,
        summary=blocks(card.summary, copy),
        sections=(*card.sections, ("Sources", _sources(each)), *scores),
        languages=tuple(sorted({"en", *each.model.languages})),
        scores=(*card.scores, *score_entries(results)),
    )
    return render(released) + table_note(values["table_type"])


def _sources(each: ModelPlan) -> str:
    pairs: dict[str, dict[str, int]] = defaultdict(dict)
    licences = {text.source: text.licence.licence for text in each.texts}
    for text, rows in zip(each.texts, each.rows, strict=True):
        pairs[text.source][text.language] = rows
    rows_of = [
        (source, ", ".join(f"{language} {count:,}" for language, count in counts.items()), licences[source])
        for source, counts in sorted(pairs.items())
    ]
    notes = dict.fromkeys(text.licence.note for text in each.texts)
    return blocks(_SOURCES, markdown_table(("source", "pairs", "licence"), rows_of), *notes)
