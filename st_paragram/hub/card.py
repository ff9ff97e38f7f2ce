"""The model card on the hub: it names the repository, licence, datasets, and scores on test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from st_paragram.core.encoding.directory import read_configuration, table_note
from st_paragram.core.encoding.record import TrainingRecord, read_training_record
from st_paragram.errors import DAMAGED, ModelDirectoryError, one_line
from st_paragram.hub.model_files import ModelFiles
from st_paragram.hub.scores import TestResult, score_entries, score_section
from st_paragram.learning.models.card import NO_LICENCE, PATH_COMMENT, Card, library_and_tags, licence_sentence, render
from st_paragram.learning.models.training_card import training_card


def hub_card(
    folder: Path,
    files: ModelFiles,
    address: str,
    licence: str | None = None,
    datasets: Sequence[str] = (),
    results: Sequence[TestResult] = (),
) -> str:
    """The card to upload: that of the directory with what changes on the hub, or a new one where there is none.

    Whatever else a card says, by hand or by an earlier version, stays. One as it was rendered becomes what rendering
    with this address and licence would give.

    Args:
        folder: the model's directory, whose card is left as it is.
        files: of the model.
        address: `owner/name` on the hub.
        licence: an identifier of the hub, in place of the one that the card states.
        datasets: names on the hub, besides those on the card.
        results: scores on test sets, in place of those of the same sets that the card has.

    Raises:
        ModelDirectoryError: the card's metadata cannot be read.
    """
    record = read_training_record(folder)
    try:
        card = ModelCard(_text(folder, files, address, record))
        text = _addressed(card.text, {folder.resolve().name, *([record.name] if record else [])}, address)
        if licence:
            text = text.replace(NO_LICENCE, licence_sentence(licence))
        card.text = _scored(text, results)
        _complete(cast("ModelCardData", card.data), files, address, licence, datasets, score_entries(results))
        return str(card)
    except (yaml.YAMLError, *DAMAGED) as error:
        path = folder / "README.md"
        raise ModelDirectoryError(f"{path}: not a model card ({one_line(error)}); correct its metadata") from error


def _text(folder: Path, files: ModelFiles, address: str, record: TrainingRecord | None) -> str:
    """The card of the directory, or a new one."""
    path = folder / "README.md"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if record is not None:
        note = table_note(read_configuration(folder).values.get("table_type"))
        card = training_card(record, files.dimension, address=address)
        return render(replace(card, stock=card.stock and files.opens_in_stock)) + note
    summary = f"Sentence embeddings of {files.dimension} components, made with st_paragram."
    return render(Card(address.partition("/")[2], summary, files.opens_in_stock, address=address))


def _addressed(text: str, names: set[str], address: str) -> str:
    """Snippets that load the model by a name of its directory load it from the hub."""
    there = f'"{address}")'
    for call in ("SentenceTransformer(", "st_paragram.load("):
        for name in names:
            text = text.replace(f'{call}"{name}")', call + there)
    # cards of earlier versions go on after the comment: "; or st_paragram.load(...)"
    return text.replace(f"{there}{PATH_COMMENT}; ", f"{there}  # ").replace(there + PATH_COMMENT, there)


def _scored(text: str, results: Sequence[TestResult]) -> str:
    """With a section of scores on test sets, in place of the one that there is."""
    if not results:
        return text
    title, scores = score_section(results)
    heading = f"\n## {title}\n"
    before, there, old = text.partition(heading)
    _, following, after = old.partition("\n## ")
    start = before if there else before.rstrip("\n") + "\n"
    return f"{start}{heading}\n{scores}\n{following}{after}"


def _complete(
    metadata: ModelCardData,
    files: ModelFiles,
    address: str,
    licence: str | None,
    datasets: Sequence[str],
    entries: list[EvalResult],
) -> None:
    """Add what the hub needs and what was asked for, and leave what the card says."""
    library, tags = library_and_tags(files.opens_in_stock)
    metadata.license = licence or metadata.license
    metadata.datasets = list(dict.fromkeys([*_listed(metadata.datasets), *datasets])) or None
    metadata.library_name = metadata.library_name or library
    metadata.pipeline_tag = metadata.pipeline_tag or "sentence-similarity"
    metadata.tags = list(dict.fromkeys([*_listed(metadata.tags), *tags]))
    new = {_set(entry) for entry in entries}
    kept = [entry for entry in metadata.eval_results or [] if _set(entry) not in new]
    if kept or entries:
        metadata.model_name = address.partition("/")[2]
        metadata.eval_results = [*kept, *entries]


def _listed(values: str | list[str] | None) -> list[str]:
    """Values of a key that may have one, several or none."""
    return [values] if isinstance(values, str) else values or []


def _set(entry: EvalResult) -> tuple[str, str | None, str]:
    return entry.dataset_name, entry.dataset_config, entry.metric_type
