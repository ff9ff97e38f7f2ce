"""The files of a pipeline in which modules of this package stand, alone or beside sentence-transformers' own.

They are what `save_pretrained` writes, and `st_paragram.json`. A stock reader has not this package's modules, and would
import any class that the files name; `read` imports classes of the two packages and no others.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Module
from torch import nn

from st_paragram.errors import ModelDirectoryError
from st_paragram.models import stock
from st_paragram.models.averaging import read_pipeline_settings
from st_paragram.models.configuration import OWN_MODULES, damaged
from st_paragram.modules.compact_embedding import TableType

PACKAGES = ("sentence_transformers.", "st_paragram.")
_MODULES_FILE = "modules.json"
_UNREADABLE = (OSError, ValueError, ImportError, RuntimeError, KeyError, TypeError, AttributeError, SafetensorError)


def check(model: SentenceTransformer) -> None:
    """Refuse a pipeline with modules of other packages: reading it would import whatever its files name.

    Raises:
        ModelDirectoryError: there are such modules.
    """
    for module in model:
        kind = type(module)
        if not f"{kind.__module__}.".startswith(PACKAGES):
            raise ModelDirectoryError(
                f"{kind.__module__}.{kind.__name__} is no module of st_paragram or sentence-transformers; a model "
                f"directory holds those alone"
            )


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the pipeline; arguments and errors as of `stock.write`.

    Raises:
        ModelDirectoryError: modules of other packages.
    """
    check(model)
    stock.write(model, folder, dtype, truncate_dim, OWN_MODULES)


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> SentenceTransformer:
    """Read what `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: a file is missing or damaged, or names a class of another package.
    """
    if values:
        raise damaged(folder, f"{next(iter(values))} is unknown")
    settings = read_pipeline_settings(folder) | ({} if truncate_dim is None else {"truncate_dim": truncate_dim})
    try:
        entries = json.loads((folder / _MODULES_FILE).read_text(encoding="utf-8"))
        modules: list[nn.Module] = [_module(folder, entry["type"], entry["path"]) for entry in entries]
        return SentenceTransformer(modules=modules, device=device, **settings)
    except _UNREADABLE as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelDirectoryError(f"{folder}: its modules cannot be read ({reason}); save it again") from error


def _module(folder: Path, kind: str, path: str) -> Module:
    """Read one module, of a class of the two packages, in a folder below the model's."""
    if not kind.startswith(PACKAGES):
        raise ValueError(f"{_MODULES_FILE} names {kind}, no module of st_paragram or sentence-transformers")
    place = PurePosixPath(path)
    if place.is_absolute() or ".." in place.parts:
        raise ValueError(f"{_MODULES_FILE} names the folder {path}, which is outside the model's")
    package, _, name = kind.rpartition(".")
    found = getattr(importlib.import_module(package), name)
    if not (isinstance(found, type) and issubclass(found, Module)):
        raise ValueError(f"{_MODULES_FILE} names {kind}, which is no module of a pipeline")
    return found.load(str(folder), subfolder=path, local_files_only=True)


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights from a folder that `write` made.

    Raises:
        ModelDirectoryError: it cannot be read, or holds another pipeline.
    """
    stock.fill(into, read(folder, {}, "cpu", None), folder)
