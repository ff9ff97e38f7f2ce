"""The files of a pipeline with modules of this package, alone or next to those of sentence-transformers.

They are what `save_pretrained` writes, and `st_paragram.json`. A stock reader has not this package's modules, and would
import any class that the files name; `read` imports classes of the two packages and no others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import nn

from st_paragram.core.encoding.directory import OWN_MODULES, damaged
from st_paragram.core.encoding.model_files import read_pipeline_settings
from st_paragram.core.encoding.table import TableType
from st_paragram.errors import ModelDirectoryError, one_line
from st_paragram.learning.models import stock
from st_paragram.learning.models.modules_file import read_modules
from st_paragram.learning.models.stock_sizes import check_sizes

PACKAGES = ("sentence_transformers.", "st_paragram.")


def holds(model: SentenceTransformer) -> bool:
    """Whether a pipeline can be of this kind: any can, `check` says if it is."""
    return True


def check(model: SentenceTransformer) -> None:
    """Refuse a pipeline with modules of other packages: reading it would import whatever its files name.

    Raises:
        ModelDirectoryError: there are such modules.
    """
    for module in model:
        kind = type(module)
        if not f"{kind.__module__}.".startswith(PACKAGES):
            raise ModelDirectoryError(
                f"{kind.__module__}.{kind.__name__} is not a module of st_paragram or "
                "sentence-transformers; model directories can hold only these"
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
        raise damaged(folder, f"{one_line(next(iter(values)), 80)} is unknown")
    settings = read_pipeline_settings(folder) | ({} if truncate_dim is None else {"truncate_dim": truncate_dim})
    with stock.reading(folder, "its modules cannot be read"):
        entries = read_modules(folder, PACKAGES)
        for entry in entries:
            check_sizes(folder, entry)
        modules: list[nn.Module] = [
            entry.kind.load(str(folder), subfolder=entry.path, local_files_only=True) for entry in entries
        ]
        model = SentenceTransformer(modules=modules, device=device, **settings)
        stock.check_finite(model)
    return model


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights from a folder that `write` made.

    Raises:
        ModelDirectoryError: it cannot be read, or holds another pipeline.
    """
    stock.fill(into, read(folder, {}, "cpu", None), folder)
