"""The model card as it stands on the hub: it names the repository, licence, datasets, and scores on test sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from st_paragram.core.damage import DAMAGED, one_line
from st_paragram.core.encoding.configuration import read_configuration
from st_paragram.core.encoding.directory import table_note
from st_paragram.core.encoding.training_record import TrainingRecord, read_training_record
from st_paragram.core.tables import markdown_table
from st_paragram.errors import ModelDirectoryError
from st_paragram.hub.model_files import ModelFiles
from st_paragram.hub.score_entries import TestResult, score_entries, score_rows, section_template
from st_paragram.learning.models.card import model_card, openings
from st_paragram.learning.models.card_texts import NO_LICENCE, licence_sentence

_WITHOUT_RECORD = """\
# {name}

Sentence embeddings of {dimension} components, made with st_paragram.

{openings}
## Licence

{licence}
"""
_SECTION = re.compile(r"\n## Scores on test sets\n.*?(?=\n## |\Z)", re.DOTALL)
# Cards of earlier versions name the second way of loading in this comment.
_COMMENT = r"((?:  # a path to this directory[^\n]*)?)"


def hub_card(
    folder: Path,
    files: ModelFiles,
    address: str,
    licence: str | None = None,
    datasets: Sequence[str] = (),
    results: Sequence[TestResult] = (),
) -> str:
    """The card to upload: that of the directory with what changes on the hub, or a new one where there is none.

    Args:
        folder: the model's directory, whose card is left as it is.
        files: of the model.
        address: `owner/name` on the hub.
        licence: an identifier of the hub, in place of the one that the card states.
        datasets: names on the hub, beside those that the card has.
        results: scores on test sets, in place of those of the same sets that the card has.

    Raises:
        ModelDirectoryError: the card's metadata cannot be read.
    """
    record = read_training_record(folder)
    try:
        card = ModelCard(_text(folder, files, address, record))
        metadata = cast("ModelCardData", card.data)
        known = {folder.resolve().name, *([record.name] if record else [])}
        body = _addressed(card.text, known, address)
        if licence:
            body = body.replace(NO_LICENCE, licence_sentence(licence))
        card.text = _scored(body, results)
        metadata.license = licence or metadata.license
        metadata.datasets = list(dict.fromkeys([*_listed(metadata.datasets), *datasets])) or None
        _complete(metadata, files, address, score_entries(results))
        return str(card)
    except (yaml.YAMLError, *DAMAGED) as error:
        path = folder / "README.md"
        raise ModelDirectoryError(f"{path}: not a model card ({one_line(error)}); mend its metadata") from error


def _text(folder: Path, files: ModelFiles, address: str, record: TrainingRecord | None) -> str:
    """The card of the directory, or a new one."""
    path = folder / "README.md"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if record is not None:
        note = table_note(read_configuration(folder).values.get("table_type"))
        return model_card(record, files.dimension, address=address) + note
    name = address.partition("/")[2]
    ways = openings(address, name, files.opens_in_stock)
    return _WITHOUT_RECORD.format(name=name, dimension=files.dimension, openings=ways, licence=NO_LICENCE)


def _addressed(text: str, names: set[str], address: str) -> str:
    """Snippets that load the model by a name of its directory load it from the hub."""
    either = "|".join(re.escape(name) for name in sorted(names))
    pattern = r'(SentenceTransformer|st_paragram\.load)\("(?:' + either + r')"\)' + _COMMENT

    def loaded(found: re.Match[str]) -> str:
        other = f'  # or st_paragram.load("{address}")' if "st_paragram.load" in found[2] else ""
        return f'{found[1]}("{address}"){other}'

    return re.sub(pattern, loaded, text)


def _scored(text: str, results: Sequence[TestResult]) -> str:
    """With a section of scores on test sets, in place of the one that there is."""
    if not results:
        return text
    table = markdown_table(("set", "score"), score_rows(results))
    section = section_template(results).format(scores=table)
    if _SECTION.search(text):
        return _SECTION.sub(lambda _: section.rstrip("\n") + "\n", text, count=1)
    return text.rstrip("\n") + "\n" + section


def _complete(metadata: ModelCardData, files: ModelFiles, address: str, entries: list[EvalResult]) -> None:
    """Fill in what the hub needs, and leave what the card says."""
    library = "sentence-transformers" if files.opens_in_stock else "st_paragram"
    metadata.library_name = metadata.library_name or library
    metadata.pipeline_tag = metadata.pipeline_tag or "sentence-similarity"
    tags = [library, "sentence-similarity", "st_paragram"]
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
