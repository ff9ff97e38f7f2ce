"""What a model directory says of itself, read from its files without loading the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.encoding.directory import read_configuration
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.encoding.record import TrainingRecord, read_training_record
from st_paragram.core.files import FileDescription, describe_files
from st_paragram.errors import ModelDirectoryError

_LICENCE = re.compile(r"^licen[sc]e:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class ModelDescription:
    """Description of a model.

    Args:
        name: of its directory.
        architecture: see `architectures`.
        properties: what the architecture must know to read it: dimension, size and kind of the vocabulary, type of the
            table; JSON values by name.
        licence: as the model card's metadata states it, or None.
        training: the record of its training run, or None.
        files: by their names.
    """

    name: str
    architecture: str
    properties: dict[str, Any]
    licence: str | None
    training: TrainingRecord | None
    files: dict[str, FileDescription]


def describe_model(folder: Path) -> ModelDescription:
    """Describe a model directory.

    Raises:
        ModelDirectoryError: it is none, or a file of it is damaged.
    """
    configuration = read_configuration(folder)
    return ModelDescription(
        folder.resolve().name,
        configuration.architecture,
        configuration.values,
        _licence(folder / "README.md"),
        read_training_record(folder),
        describe_files(folder),
    )


def _licence(card: Path) -> str | None:
    """What the metadata on top of a model card says."""
    if not card.is_file():
        return None
    text = card.read_text(encoding="utf-8", errors="replace")
    head = text.partition("\n---")[0] if text.startswith("---") else ""
    found = _LICENCE.search(head)
    return found[1].strip() if found else None


def check_model(folder: Path) -> str:
    """Load a model and look at all of its numbers, as loading other architectures does; says what was found.

    Raises:
        ModelDirectoryError: it is none, it cannot be loaded, or its embeddings are not finite.
    """
    model = load_encoder(folder)
    if isinstance(model, Encoder) and not model.model.table.is_finite():
        raise ModelDirectoryError(f"{folder}: NaN or infinite components; fetch or save the model again")
    return f"embeddings of {model.get_embedding_dimension()} components, and all numbers are finite"
