"""The model card on the hub: it names the repository, licence, datasets, and scores on test sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard

from st_paragram.core.encoding.directory import read_configuration, table_note
from st_paragram.core.encoding.record import read_training_record
from st_paragram.errors import DAMAGED, ModelDirectoryError, one_line
from st_paragram.hub.model_files import ModelFiles
from st_paragram.hub.scores import TestResult, score_entries, score_section
from st_paragram.learning.models.card import PATH_COMMENT, Card, from_record, render


def hub_card(
    folder: Path,
    files: ModelFiles,
    address: str,
    licence: str | None = None,
    datasets: Sequence[str] = (),
    results: Sequence[TestResult] = (),
) -> str:
    """The card to upload, whose snippets name the repository; the directory's card is left as it is.

    That of a training record is rendered again. What else the directory's card has in its metadata and in sections of
    other titles stays; where there is no record, all of it does.

    Args:
        folder: the model's directory.
        files: of the model.
        address: `owner/name` on the hub.
        licence: an identifier of the hub, in place of the one that the card states.
        datasets: names on the hub, besides those on the card.
        results: scores on test sets, in place of those of the same sets that the card has.
    """
    path, record, name = folder / "README.md", read_training_record(folder), address.partition("/")[2]
    try:
        there = ModelCard(path.read_text(encoding="utf-8")) if path.is_file() else None
        licence = licence or (there.data.get("license") if there else None)
        summary = f"Sentence embeddings of {files.dimension} components, made with st_paragram."
        card = Card(name, summary, files.opens_in_stock, address=address, licence=licence)
        if record is not None:
            card = from_record(record, files.dimension, licence, address)
            card = replace(card, name=name, stock=card.stock and files.opens_in_stock)
        note = table_note(read_configuration(files.folder).values.get("table_type"))
        new: Any = ModelCard(render(card) + note)
        sections = _sections(new.text) if record is not None or there is None else {}
        if results:
            title, scores = score_section(results)
            sections[title] = f"\n{scores}\n"
        names = re.escape(folder.resolve().name)  # of the model in the snippets of a card without a record
        text = re.sub(rf'\("{names}"\)(?:{PATH_COMMENT})?', f'("{address}")', there.text if there else "")
        for title, body in (_sections(text) if there else {}).items():
            sections.setdefault(title, body)
        first = sections.pop("", "")
        new.text = first + "".join(f"\n## {title}\n{body}" for title, body in sections.items())
        data: Any = there.data if there and there.data.to_dict() else new.data
        data.license = licence
        data.datasets = list(dict.fromkeys([*_listed(data.get("datasets")), *datasets])) or None
        data.library_name = data.get("library_name") or new.data.library_name
        data.pipeline_tag = data.get("pipeline_tag") or new.data.pipeline_tag
        data.tags = list(dict.fromkeys([*_listed(data.get("tags")), *new.data.tags]))
        entries = score_entries(results)
        fresh = {_set(entry) for entry in entries}
        entries = [*(entry for entry in data.get("eval_results") or [] if _set(entry) not in fresh), *entries]
        if entries:
            data.model_name, data.eval_results = name, entries
        return f"---\n{data.to_yaml()}\n---\n{new.text}"
    except (yaml.YAMLError, *DAMAGED) as error:
        raise ModelDirectoryError(f"{path}: not a model card ({one_line(error)}); correct its metadata") from error


def _sections(text: str) -> dict[str, str]:
    """The parts of a card by their titles; what precedes them has none."""
    first, *others = text.split("\n## ")
    return {"": first} | {title: body for title, _, body in (part.partition("\n") for part in others)}


def _listed(values: str | list[str] | None) -> list[str]:
    """Values of a key that may have one, several or none."""
    return [values] if isinstance(values, str) else values or []


def _set(entry: EvalResult) -> tuple[str, str | None, str]:
    return entry.dataset_name, entry.dataset_config, entry.metric_type
