"""Descriptions of model directories, read from their files without loading the model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.files import describe_files
from st_paragram.core.model_directory.configuration import read_configuration
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.errors import ModelDirectoryError


def describe_model(folder: Path) -> dict[str, Any]:
    """Describe a model directory: architecture, properties, license, training and files."""
    configuration = read_configuration(folder)
    record = read_training_record(folder)
    license = None
    with suppress(OSError, ValueError, TypeError, yaml.YAMLError):  # no card, or not a valid card
        text = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
        license = ModelCard(text).data.get("license")
    return {
        "name": folder.resolve().name,
        "architecture": configuration.architecture,
        "properties": configuration.values,
        "license": license,
        "training": None if record is None else asdict(record),
        "files": describe_files(folder),
    }


def check_model(folder: Path) -> str:
    """Load a model and check all of its numbers; return the result in words."""
    model = load_encoder(folder)
    # Loading other architectures checks them.
    if isinstance(model, Encoder) and not model.model.table.is_finite():
        raise ModelDirectoryError(
            f"{folder}: NaN or infinite values; download or save the model again"
        )
    return f"embeddings of {model.get_embedding_dimension()} dimensions, all numbers finite"
