"""`st_paragram.json`, the file that makes a folder a model directory: its architecture, and what that must know.

Format version 3 names the `architecture`; the other entries are the architecture's own. Versions 1 (float32 alone) and
2 (which names the table's type) were written when averaging of sentencepiece embeddings was the only architecture; they
are read as such.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.files import read_json, write_json
from st_paragram.errors import ModelDirectoryError, one_line, refused, short

CONFIG_FILE = "st_paragram.json"
#: What the files held when they were saved, see `checksums_file`.
CHECKSUMS_FILE = "SHA256SUMS"
#: What sentence-transformers keeps of a pipeline besides its modules.
STOCK_CONFIG_FILE = "config_sentence_transformers.json"
#: The embedding table of an averaging model; other architectures may have more weights.
WEIGHTS_FILE = "model.safetensors"
#: The record of the training run.
TRAINING_FILE = "training.json"
FORMAT_VERSION = 3
AVERAGING, STOCK, OWN_MODULES = "averaging", "stock", "modules"
_OLD_OPTIONS = {"lower_case": bool, "segmentation": str}


@dataclass(frozen=True)
class Configuration:
    """The contents of `st_paragram.json`.

    Args:
        architecture: a name in `architectures.FILES`, or that of a family, see `core.families`.
        values: what the architecture needs to read its folder; JSON values.
    """

    architecture: str
    values: dict[str, Any]


def write_configuration(folder: Path, configuration: Configuration) -> None:
    """Write `st_paragram.json`, the last of a folder's files: checksums of earlier ones go."""
    (folder / CHECKSUMS_FILE).unlink(missing_ok=True)
    head = {"format_version": FORMAT_VERSION, "architecture": configuration.architecture}
    write_json(folder / CONFIG_FILE, head | configuration.values, indent=2)


def read_configuration(folder: Path) -> Configuration:
    """Read `st_paragram.json`, of any version.

    Raises:
        ModelDirectoryError: the file is missing, of a newer version or damaged.
    """
    path = file_of(folder, CONFIG_FILE)
    with configured(folder):
        values: dict[str, Any] = read_json(path)
        version = values.pop("format_version")
        if version not in range(1, FORMAT_VERSION + 1):
            raise ModelDirectoryError(
                f"{path}: format version {short(version)}, this st_paragram reads 1 to {FORMAT_VERSION}; update it"
            )
        if version < FORMAT_VERSION:
            values = _of_today(values)
        architecture = values.pop("architecture")
        if not isinstance(architecture, str):
            raise ValueError(f"architecture is {short(architecture)}")
        return Configuration(architecture, values)


def _of_today(values: dict[str, Any]) -> dict[str, Any]:
    """Entries of version 1 or 2 as those of version 3."""
    options = {}
    for name, kind in _OLD_OPTIONS.items():
        options[name] = values.pop(name)
        if type(options[name]) is not kind:
            raise ValueError(f"{name} is {short(options[name])}")
    tokenizer = {"tokenizer_kind": "sentencepiece", "tokenizer_options": options}
    return {"architecture": AVERAGING, "table_type": "float32"} | tokenizer | values


def configured(folder: Path, *others: type[Exception]) -> refused:
    """A `with` block that reads what `st_paragram.json` says, see `refused`."""
    what = "not a configuration of st_paragram"
    return refused(ModelDirectoryError, folder / CONFIG_FILE, what, "save the model again", *others)


def damaged(folder: Path, reason: object) -> ModelDirectoryError:
    """The error to raise where `st_paragram.json` is not what is written there."""
    return ModelDirectoryError(
        f"{folder / CONFIG_FILE}: not a configuration of st_paragram ({reason}); save the model again"
    )


def file_of(folder: Path, name: str) -> Path:
    """A file that a model directory must have.

    Raises:
        ModelDirectoryError: it is missing, or nobody may look at it.
    """
    if not _is_file(folder / name):
        if folder.is_dir() and not os.access(folder, os.X_OK):
            raise ModelDirectoryError(f"{folder}: its files cannot be read; change its permissions")
        raise ModelDirectoryError(
            f"{folder}: {one_line(name, 80)} is missing; save the model again with st_paragram, which writes all of "
            "its files"
        )
    return folder / name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # what cannot be a name of a file
        return False
