"""The files of any pipeline of sentence-transformers' own modules: its own `save_pretrained`, and `st_paragram.json`.

`SentenceTransformer(path)` and `st_paragram.load(path)` give the same pipeline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer

from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.models.configuration import STOCK, Configuration, damaged, write_configuration
from st_paragram.modules.compact_embedding import TableType


def check(model: SentenceTransformer) -> None:
    """Refuse a pipeline with modules that are not sentence-transformers': its stock reader would not import them.

    Raises:
        ModelDirectoryError: there are such modules.
    """
    foreign = [type(module).__name__ for module in model if not _is_stock(module)]
    if foreign:
        kinds = ", ".join(type(module).__name__ for module in model)
        raise ModelDirectoryError(
            f"a model directory holds TokenEmbedding and MeanPool, or modules of sentence-transformers alone; "
            f"this pipeline is {kinds}, of which {foreign[0]} is none of sentence-transformers'"
        )


def _is_stock(module: object) -> bool:
    return type(module).__module__.startswith("sentence_transformers.")


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the pipeline as its own `save_pretrained` does, without a model card, and `st_paragram.json` beside.

    Raises:
        ModelDirectoryError: modules that a stock reader would not import.
        SettingsError: another type or fewer components are asked for, which only a table of embeddings can have.
    """
    check(model)
    if dtype is not None or truncate_dim is not None:
        raise SettingsError(
            "only averaging models can be stored in another type or with fewer components; leave dtype and "
            "truncate_dim out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(str(folder), create_model_card=False)
    write_configuration(folder, Configuration(STOCK, {}))


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> SentenceTransformer:
    """Read what `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: sentence-transformers cannot read it.
    """
    if values:
        raise damaged(folder, f"{next(iter(values))} is unknown")
    try:
        return SentenceTransformer(str(folder), device=device, truncate_dim=truncate_dim)
    except (OSError, ValueError, ImportError, RuntimeError, KeyError, TypeError, SafetensorError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelDirectoryError(
            f"{folder}: sentence-transformers cannot read it ({reason}); save it again"
        ) from error


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's weights from a folder that `write` made.

    Raises:
        ModelDirectoryError: sentence-transformers cannot read it, or it holds another pipeline.
    """
    stored = read(folder, {}, "cpu", None).state_dict()
    try:
        into.load_state_dict(stored)
    except RuntimeError as error:
        raise ModelDirectoryError(f"{folder}: the weights of another pipeline than the one to fill") from error
