"""The architectures of model directories by name: the files of each, and what reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from st_paragram.core.encoding.configuration import (
    AVERAGING,
    CONFIG_FILE,
    OWN_MODULES,
    STOCK,
    TRAINING_FILE,
    WEIGHTS_FILE,
    file_of,
    read_configuration,
)
from st_paragram.core.families import FAMILIES, entry_of_architecture
from st_paragram.errors import ModelDirectoryError, one_line, short

_PIPELINE_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")

#: Patterns of the files that make a model, in the order in which its fingerprint is computed; families add theirs.
FILES: dict[str, tuple[str, ...]] = {
    AVERAGING: (CONFIG_FILE, "*.model", WEIGHTS_FILE),
    STOCK: _PIPELINE_FILES,
    OWN_MODULES: _PIPELINE_FILES,
}


def check_architecture(name: str, folder: Path) -> None:
    """Refuse an architecture that this version does not have.

    Raises:
        ModelDirectoryError: `st_paragram.json` names an unknown architecture.
    """
    if name not in FILES and entry_of_architecture(name) is None:
        known = ", ".join([*FILES, *(known for entry in FAMILIES.values() for known in entry.architectures)])
        raise ModelDirectoryError(
            f"{folder}: architecture {short(name)}, this version of st_paragram knows {known}; update it"
        )


def files_of(folder: Path) -> tuple[str, ...]:
    """Patterns of the files that make the model in a folder.

    Raises:
        ModelDirectoryError: the folder is not a model directory, or names an unknown architecture.
    """
    architecture = read_configuration(folder).architecture
    check_architecture(architecture, folder)
    entry = entry_of_architecture(architecture)
    return FILES[architecture] if entry is None else entry.files


def fingerprint(folder: Path) -> str:
    """SHA-256 of a model's configuration, tokenizer and weights, which distinguishes it from other models.

    Raises:
        ModelDirectoryError: the folder is not a model directory, or a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in _files(folder):
        try:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            reason = one_line(error, about=path)
            raise ModelDirectoryError(f"{path}: cannot be read ({reason}); check the file") from error
    return digest.hexdigest()


def weights_size(folder: Path) -> int:
    """Bytes of a model directory's weights."""
    weights = sorted(folder.rglob("*.safetensors")) or [file_of(folder, WEIGHTS_FILE)]
    return sum(path.stat().st_size for path in weights)


def _files(folder: Path) -> Iterator[Path]:
    """The files that make a model."""
    for pattern in files_of(folder):
        if "*" not in pattern:
            yield file_of(folder, pattern)
        else:
            yield from sorted(path for path in folder.rglob(pattern) if path.name != TRAINING_FILE)
