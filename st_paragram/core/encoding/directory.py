"""Model directories as a whole: `st_paragram.json`, the files of each architecture, writing all or nothing.

`st_paragram.json` makes a folder a model directory: it names the `architecture`, whose own the other entries are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from st_paragram.core.families import FAMILIES, entry_of_architecture
from st_paragram.core.files import atomic_folder, check_output_folder, output_lock, read_json, write_json, write_text
from st_paragram.errors import ModelDirectoryError, one_line, refused, short

CONFIG_FILE = "st_paragram.json"
STOCK_CONFIG_FILE = "config_sentence_transformers.json"  # of a pipeline, besides its modules
MODULES_FILE = "modules.json"  # their list
WEIGHTS_FILE = "model.safetensors"  # the table of an averaging model; other architectures may have more weights
TRAINING_FILE = "training.json"  # the record of the training run
FORMAT_VERSION = 3
AVERAGING, PIPELINE = "averaging", "modules"

#: Patterns of the files that make a model, in the order in which its fingerprint is computed.
FILES = {
    AVERAGING: (CONFIG_FILE, "*.model", WEIGHTS_FILE),
    PIPELINE: ("*.json", "*.txt", "*.model", "*.safetensors"),  # and of the architectures of families
}

_TABLE_NOTES = {
    "float16": """Half the size of float32. `st_paragram.load` averages in float32; a stock `SentenceTransformer`
computes and returns float16.""",
    "int8": """A quarter of the size of float32: 8-bit integers with one scale a row. `st_paragram.load` keeps them as
they are in memory. A stock `SentenceTransformer` reads them as float32 since sentence-transformers 6.2; an older one
stops with an error about tensors that "can require gradients".""",
    "int4": """An eighth of the size of float32: 4-bit integers, two a byte, with one scale a row. `st_paragram.load`
keeps them as they are in memory. `SentenceTransformer` opens the model where st_paragram is installed, with
`trust_remote_code=True`.""",
}


@dataclass(frozen=True)
class Configuration:
    """What `st_paragram.json` says: an architecture, of `FILES` or of a family, and its JSON values."""

    architecture: str
    values: dict[str, Any]


def write_configuration(folder: Path, configuration: Configuration) -> None:
    """Write `st_paragram.json`."""
    head = {"format_version": FORMAT_VERSION, "architecture": configuration.architecture}
    write_json(folder / CONFIG_FILE, head | configuration.values, indent=2)


def read_configuration(folder: Path) -> Configuration:
    """Read `st_paragram.json`; without it, a folder that sentence-transformers has written is a pipeline."""
    if (folder / MODULES_FILE).is_file() and not (folder / CONFIG_FILE).is_file():
        return Configuration(PIPELINE, {})
    path = file_of(folder, CONFIG_FILE)
    with configured(folder):
        values: dict[str, Any] = read_json(path)
        version, architecture = values.pop("format_version"), values.pop("architecture", None)
        if version == FORMAT_VERSION and isinstance(architecture, str):
            return Configuration(architecture, values)
    seen = f"format version {short(version)}, architecture {short(architecture)}"
    raise ModelDirectoryError(f"{path}: {seen}, this st_paragram reads version {FORMAT_VERSION}; update it")


def configured(folder: Path, *others: type[Exception]) -> AbstractContextManager[None]:
    """A `with` block that reads what `st_paragram.json` says, see `refused`."""
    where, what = folder / CONFIG_FILE, "not a configuration of st_paragram"
    return refused(ModelDirectoryError, where, what, "save the model again", *others)


def file_of(folder: Path, name: str) -> Path:
    """A file that a model directory must have."""
    if not (folder / name).is_file():
        raise ModelDirectoryError(f"{folder}: {one_line(name)} is missing; save the model again with st_paragram")
    return folder / name


def check_architecture(name: str, folder: Path) -> tuple[str, ...]:
    """Patterns of the files of an architecture; refuses one that this version does not have."""
    if name in FILES:
        return FILES[name]
    if entry_of_architecture(name):
        return FILES[PIPELINE]
    known = ", ".join([*FILES, *(known for entry in FAMILIES.values() for known in entry.architectures)])
    seen = f"architecture {short(name)}, this version of st_paragram knows {known}"
    raise ModelDirectoryError(f"{folder}: {seen}; update it")


def files_of(folder: Path) -> tuple[str, ...]:
    """Patterns of the files that make the model in a folder."""
    return check_architecture(read_configuration(folder).architecture, folder)


def fingerprint(folder: Path) -> str:
    """SHA-256 of a model's configuration, tokenizer and weights, which distinguishes it from other models."""
    digest = hashlib.sha256()
    for pattern in files_of(folder):
        for path in sorted(folder.rglob(pattern)) if "*" in pattern else [file_of(folder, pattern)]:
            if path.name != TRAINING_FILE:
                digest.update(path.read_bytes())
    return digest.hexdigest()


def weights_size(folder: Path) -> int:
    """Bytes of a model directory's weights."""
    return sum(path.stat().st_size for path in folder.rglob("*.safetensors"))


def save(path: str | Path, write: Callable[[Path], None], card: str, training: str | None, overwrite: bool) -> Path:
    """Make a model directory, all of it or nothing: what `write` writes into a folder that it makes, and texts.

    `card`, with a note on a table of float16, int8 or int4, is for `README.md`, and `training` for `training.json`.
    """
    path = Path(path)
    with output_lock(path, partial(check_free, path, overwrite)), atomic_folder(path) as new:
        write(new)
        for kind in _TABLE_NOTES:  # which the original may have had
            card = card.replace(table_note(kind), "")
        if card := card + table_note(read_configuration(new).values.get("table_type")):
            write_text(new / "README.md", card.lstrip("\n"))
        if training:
            write_text(new / TRAINING_FILE, training)
    return path


def check_free(path: str | Path, overwrite: bool = False) -> None:
    """Refuse, before hours of training, a place that `save` would refuse."""
    check_output_folder(Path(path), overwrite, CONFIG_FILE, "model directory of st_paragram", ModelDirectoryError)


def table_note(table_type: str | None) -> str:
    """What readers should know of a table of this type; empty for float32, or for models without a table."""
    note = _TABLE_NOTES.get(table_type or "")
    return f"\n## Table of {table_type}\n\n{note}\n" if note else ""
