"""`modules.json`: the classes of a pipeline, and from which folder each reads.

Reading a pipeline imports the classes that this file names and lets them read the folders that it names, so both are
checked before: classes are modules of sentence-transformers or of this package, folders are the model's own, and
weights are safetensors, since what is pickled could run code.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sentence_transformers.base.modules import Module

from st_paragram.core.encoding.directory import file_of
from st_paragram.core.encoding.model_files import MODULES_FILE
from st_paragram.core.files import read_json
from st_paragram.errors import one_line


@dataclass(frozen=True)
class ModuleEntry:
    """A module of a pipeline.

    Args:
        kind: its class.
        path: of its folder in the model's, with slashes; empty for the model's own.
    """

    kind: type[Module]
    path: str


def read_modules(folder: Path, packages: tuple[str, ...]) -> list[ModuleEntry]:
    """The modules of a pipeline, in order; nothing of them is read yet.

    Args:
        folder: of the model.
        packages: beginnings of the names that classes may have, "sentence_transformers.".

    Raises:
        ModelDirectoryError: there is no `modules.json`.
        OSError, ValueError, TypeError, KeyError, ImportError, AttributeError: it is damaged, names a class of another
            package, one that is not a module, or a folder outside the model's, or weights are pickled.
    """
    entries = read_json(file_of(folder, MODULES_FILE))
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{MODULES_FILE} is not a list of modules")
    for path in folder.rglob("pytorch_model*.bin"):
        if not (path.parent / "model.safetensors").is_file():
            raise ValueError(f"{path.relative_to(folder)} is pickled, and only safetensors are read")
    return [ModuleEntry(_kind(entry["type"], packages), _path(folder, entry["path"])) for entry in entries]


def _kind(name: str, packages: tuple[str, ...]) -> type[Module]:
    if not name.startswith(packages):
        raise ValueError(f"{MODULES_FILE} names {_shown(name)}, not a module of st_paragram or sentence-transformers")
    package, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(package), attribute)
    if not (isinstance(found, type) and issubclass(found, Module)):
        raise ValueError(f"{MODULES_FILE} names {_shown(name)}, which is not a module of a pipeline")
    return found


def _path(folder: Path, path: str) -> str:
    """A folder in the model's, also where links lead."""
    place = PurePosixPath(path)
    outside = place.is_absolute() or ".." in place.parts or "\\" in path
    if outside or not (folder / place).resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{MODULES_FILE} names the folder {_shown(path)}, which is outside the model's")
    return path


def _shown(name: str) -> str:
    return one_line(name, 80)
