"""Model directories as a whole: `st_paragram.json`, the files of each architecture, atomic writes.

`st_paragram.json` makes a folder a model directory. It names the `architecture`, on which the other
entries depend.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from st_paragram.core.files import read_json, write_json, write_text
from st_paragram.core.folders import atomic_folder
from st_paragram.core.outputs import check_output_folder, output_lock
from st_paragram.errors import ModelDirectoryError, one_line, refused, short

CONFIG_FILE = "st_paragram.json"
STOCK_CONFIG_FILE = "config_sentence_transformers.json"  # settings of a pipeline
MODULES_FILE = "modules.json"  # modules of a pipeline
# embedding matrix of an averaging model; other architectures may have more weights
WEIGHTS_FILE = "model.safetensors"
TRAINING_FILE = "training.json"  # the record of the training run
FORMAT_VERSION = 3
# Architectures.
AVERAGING = "averaging"
PIPELINE = "modules"
GENERATIVE = "generative"
DUAL_ENCODER = "dual-encoder"

_PIPELINE_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
#: Patterns of the files that make a model, in the order in which its fingerprint is computed.
FILES: dict[str, tuple[str, ...]] = {
    AVERAGING: (CONFIG_FILE, "*.model", WEIGHTS_FILE),
    PIPELINE: _PIPELINE_FILES,
    GENERATIVE: _PIPELINE_FILES,
    DUAL_ENCODER: _PIPELINE_FILES,
}

_TABLE_NOTES = {
    "float16": (
        "Half the size of float32. `st_paragram.load` averages in float32; plain"
        " sentence-transformers computes\nand returns float16."
    ),
    "int8": (
        "A quarter of the size of float32: 8-bit integers with one scale per row."
        " `st_paragram.load` keeps them as\nthey are in memory. Plain sentence-transformers reads"
        " them as float32 from version 6.2 on; older versions stop with an\nerror about tensors"
        ' that "can require gradients".'
    ),
    "int4": (
        "An eighth of the size of float32: 4-bit integers, two per byte, with one scale per row.\n"
        "`st_paragram.load` keeps them as they are in memory. `SentenceTransformer` opens the model"
        " with\n`trust_remote_code=True` where st_paragram is installed."
    ),
}


@dataclass(frozen=True)
class Configuration:
    """The content of `st_paragram.json`: an architecture of `FILES`, and its JSON values."""

    architecture: str
    values: dict[str, Any]


def write_configuration(folder: Path, configuration: Configuration) -> None:
    """Write `st_paragram.json`."""
    head = {"format_version": FORMAT_VERSION, "architecture": configuration.architecture}
    write_json(folder / CONFIG_FILE, head | configuration.values, indent=2)


def is_model_directory(folder: Path) -> bool:
    """Whether a folder is a model directory of this package or of sentence-transformers."""
    return (folder / CONFIG_FILE).is_file() or (folder / MODULES_FILE).is_file()


def read_configuration(folder: Path) -> Configuration:
    """Read `st_paragram.json`; a folder of sentence-transformers without it is a pipeline."""
    if not is_model_directory(folder):
        raise ModelDirectoryError(
            f"{folder}: not a model directory, since it has no {CONFIG_FILE}; name another folder"
        )
    path = folder / CONFIG_FILE
    if not path.is_file():
        return Configuration(PIPELINE, {})
    with configured(folder):
        values: dict[str, Any] = read_json(path)
        if not isinstance(values, dict):
            raise ValueError(f"{short(values)} is not an object")
        version = values.pop("format_version")
        architecture = values.pop("architecture", None)
        if version == FORMAT_VERSION and isinstance(architecture, str):
            return Configuration(architecture, values)
    raise ModelDirectoryError(
        f"{path}: format version {short(version)}, architecture {short(architecture)}, but this"
        f" version reads {FORMAT_VERSION}; update st_paragram"
    )


def configured(folder: Path, *others: type[Exception]) -> AbstractContextManager[None]:
    """Return a context for reading the values of `st_paragram.json`, see `refused`."""
    problem = "not a configuration of st_paragram"
    return refused(
        ModelDirectoryError, folder / CONFIG_FILE, problem, "save the model again", *others
    )


def file_of(folder: Path, name: str) -> Path:
    """Return the path of a file that a model directory must have."""
    if not (folder / name).is_file():
        raise ModelDirectoryError(
            f"{folder}: {one_line(name)} is missing; save the model again with st_paragram"
        )
    return folder / name


def check_architecture(name: str, folder: Path) -> tuple[str, ...]:
    """Return the file patterns of an architecture; refuse an unknown one."""
    if name not in FILES:
        raise ModelDirectoryError(
            f"{folder}: unknown architecture {short(name)} (this version knows"
            f" {', '.join(FILES)}); update st_paragram"
        )
    return FILES[name]


def files_of(folder: Path) -> tuple[str, ...]:
    """Return the patterns of the files that form the model in a folder."""
    return check_architecture(read_configuration(folder).architecture, folder)


def fingerprint(folder: Path) -> str:
    """Return the SHA-256 of a model's configuration, tokenizer and weights."""
    digest = hashlib.sha256()
    for pattern in files_of(folder):
        paths = sorted(folder.rglob(pattern)) if "*" in pattern else [file_of(folder, pattern)]
        for path in paths:
            if path.name != TRAINING_FILE:
                digest.update(path.read_bytes())
    return digest.hexdigest()


def weights_size(folder: Path) -> int:
    """Return the size of a model directory's weights in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*.safetensors"))


def save_directory(
    path: str | Path,
    write: Callable[[Path], None],
    card: str | Callable[[Path], str],
    training: str | None,
    overwrite: bool,
) -> Path:
    """Make a model directory, all of it or nothing.

    Args:
        path: The folder.
        write: Function that creates a folder and fills it.
        card: Text of `README.md`, or a function that makes it from the filled folder; a note on a
            table of float16, int8 or int4 is added.
        training: Text of `training.json`.
        overwrite: Replace an existing model directory.
    """
    path = Path(path)
    check = partial(check_free, path, overwrite, create_parents=True)
    with output_lock(path, check), atomic_folder(path) as new:
        write(new)
        text = card if isinstance(card, str) else card(new)
        for kind in _TABLE_NOTES:  # left over from the original
            text = text.replace(table_note(kind), "")
        text += table_note(read_configuration(new).values.get("table_type"))
        if text:
            write_text(new / "README.md", text.lstrip("\n"))
        if training:
            write_text(new / TRAINING_FILE, training)
    return path


def check_free(path: str | Path, overwrite: bool = False, create_parents: bool = False) -> None:
    """Refuse, before hours of training, an output that `save` would refuse.

    Unless `create_parents`, also refuse a path with more than one missing folder.
    """
    check_output_folder(
        Path(path),
        overwrite,
        marker=CONFIG_FILE,
        kind="model directory of st_paragram",
        error=ModelDirectoryError,
        create_parents=create_parents,
    )


def table_note(table_type: str | None) -> str:
    """Return the model card's note on a table of this type; empty for float32 or no table."""
    if table_type not in _TABLE_NOTES:
        return ""
    return f"\n## Table of {table_type}\n\n{_TABLE_NOTES[table_type]}\n"
