"""The card of a released model: that of its training, with licence, sources and scores, for people and the hub."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import cast

from huggingface_hub import ModelCard, ModelCardData

from st_paragram.core.encoding.configuration import TRAINING_FILE, read_configuration
from st_paragram.core.encoding.directory import table_note
from st_paragram.core.encoding.training_record import read_training_record
from st_paragram.core.tables import markdown_table
from st_paragram.errors import ModelDirectoryError
from st_paragram.hub.score_entries import SCORE_SECTION, TestResult, score_entries, score_rows
from st_paragram.learning.models.card import model_card
from st_paragram.release.plan import ModelPlan
from st_paragram.tools.evaluation.results import StsResult, TatoebaResult

_SECTIONS = """

## Sources

What it was trained on, before preparation, and under which licence each source is offered.

{sources}
"""


def release_card(
    folder: Path, each: ModelPlan, sts: StsResult | None = None, tatoeba: TatoebaResult | None = None
) -> str:
    """The card of a model or of a smaller copy.

    Args:
        folder: its directory, named as it is.
        each: what the model was made of.
        sts: its scores, if it was scored.
        tatoeba: the same.

    Raises:
        ModelDirectoryError: the directory has no record of a training run.
    """
    name = folder.name
    text = _card_of_training(folder, each.model.licence).rstrip("\n")
    if name != each.name:
        text += f"\n\nA smaller copy of {each.name}: its first components, rounded."
    text += _SECTIONS.format(sources=_sources(each))
    text += "".join(f"\n{note}\n" for note in dict.fromkeys(text.licence.note for text in each.texts) if note)
    results: list[TestResult] = [result for result in (sts, tatoeba) if result]
    if results:
        text += SCORE_SECTION.format(scores=markdown_table(("set", "score"), score_rows(results)))
    made = ModelCard(text)
    metadata = cast("ModelCardData", made.data)
    metadata.language = sorted({"en", *each.model.languages})
    metadata.model_name = name
    metadata.eval_results = [*(metadata.eval_results or ()), *score_entries(results)] or None
    return str(made)


def _card_of_training(folder: Path, licence: str | None) -> str:
    record = read_training_record(folder)
    if record is None:
        raise ModelDirectoryError(f"{folder / TRAINING_FILE}: missing; remove {folder}, and make the release again")
    values = read_configuration(folder).values
    card = model_card(replace(record, name=folder.name), values["embedding_dimension"], licence, sources=False)
    return card + table_note(values["table_type"])


def _sources(each: ModelPlan) -> str:
    pairs: dict[str, dict[str, int]] = defaultdict(dict)
    licences = {text.source: text.licence.licence for text in each.texts}
    for text, rows in zip(each.texts, each.rows, strict=True):
        pairs[text.source][text.language] = rows
    rows_of = [
        (source, ", ".join(f"{language} {count:,}" for language, count in counts.items()), licences[source])
        for source, counts in sorted(pairs.items())
    ]
    return markdown_table(("source", "pairs", "licence"), rows_of)
