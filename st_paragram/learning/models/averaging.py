"""Averaging models as pipelines: `TokenEmbedding`, `MeanPool` and perhaps `Normalize`; their files are in `core`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn

from st_paragram.core.encoding import model_files as files
from st_paragram.core.encoding.directory import WEIGHTS_FILE, file_of
from st_paragram.core.encoding.model_files import PIPELINE_SETTINGS, AveragingModel, map_table
from st_paragram.core.encoding.table import TableType
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.modules.compact_embedding import in_numpy, in_torch
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import TokenEmbedding, token_embedding


def averaging_embedding(model: SentenceTransformer) -> TokenEmbedding | None:
    """The first module, if the pipeline only averages token embeddings, and perhaps normalizes the mean; else None."""
    first, *others = model._modules.values() or [None]
    if not isinstance(first, TokenEmbedding) or not others or type(others[0]) is not MeanPool:
        return None
    kind = type(first)
    inherited = (kind.forward, kind.preprocess) == (TokenEmbedding.forward, TokenEmbedding.preprocess)
    return first if inherited and (not others[1:] or _normalize_alone(others[1:])) else None


def _normalize_alone(modules: Sequence[nn.Module | None]) -> bool:
    """Whether modules are one `Normalize` that scales sentence embeddings in place."""
    if len(modules) != 1 or type(modules[0]) is not Normalize:
        return False
    names = (modules[0].module_input_name, modules[0].module_output_name)
    return names == ("sentence_embedding", "sentence_embedding")


def gives_unit_vectors(model: SentenceTransformer) -> bool:
    """Whether an averaging model ends with `Normalize`, so that its embeddings have length 1."""
    return averaging_embedding(model) is not None and len(model._modules) == 3


def embedding_of(model: SentenceTransformer) -> TokenEmbedding:
    """The first module of an averaging model, which holds its table.

    Raises:
        ModelDirectoryError: another pipeline.
    """
    embedding = averaging_embedding(model)
    if embedding is None:
        kinds = " and ".join(type(module).__name__ for module in model)
        raise ModelDirectoryError(f"a pipeline of {kinds}: only TokenEmbedding and MeanPool have a table to average")
    return embedding


def check(model: SentenceTransformer) -> None:
    """Refuse early a tokenizer of an unknown kind, and a sentencepiece model that cannot become a `tokenizer.json`.

    Raises:
        ModelDirectoryError: it is one of them, or the pipeline is another.
    """
    files.stock_tokenizer(embedding_of(model).tokenizer)


def parts(model: SentenceTransformer) -> AveragingModel:
    """The parts of an averaging model; the table is in the memory of the pipeline's where that is on the CPU.

    Raises:
        ModelDirectoryError: another pipeline.
    """
    embedding = embedding_of(model)
    settings = {name: getattr(model, name) for name in PIPELINE_SETTINGS}
    return AveragingModel(
        embedding.tokenizer, in_numpy(embedding.embedding), gives_unit_vectors(model), settings, embedding.dropout
    )


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the files of both readers, or of the plugin's alone; without a model card.

    Args:
        model: an averaging model.
        folder: made if it is not there.
        dtype: store the table as float32, float16, int8 or int4; as it is if not given.
        truncate_dim: store the first components of each row only.

    Raises:
        ModelDirectoryError: another pipeline, or a tokenizer that `check` refuses.
        SettingsError: no such type, a dimension below 1, or numbers that do not fit the type.
    """
    files.write(parts(model), folder, dtype, truncate_dim)


def read(
    folder: Path, values: dict[str, Any], truncate_dim: int | None = None
) -> tuple[TokenEmbedding, AveragingModel]:
    """Read tokenizer and table.

    Args:
        folder: of the model.
        values: what its `st_paragram.json` says.
        truncate_dim: read the first components of each row only.

    Returns:
        The first module, and what was read. A table of float16, int8 or int4 stays what it is, and becomes float32 only
        in an installation without compiled kernels.

    Raises:
        ModelDirectoryError: a file is missing or damaged.
        SettingsError: a `truncate_dim` below 1.
    """
    model = files.read(folder, values, truncate_dim)
    table = in_torch(model.table)
    return token_embedding(model.tokenizer, weights=table, dropout=model.dropout), model


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's table, float32, from a folder that `write` made.

    Raises:
        ModelDirectoryError: the weights are missing, damaged or of another shape or type.
    """
    embedding = embedding_of(into)
    weight = embedding.embedding.weight
    path, shape = file_of(folder, WEIGHTS_FILE), (weight.shape[0], weight.shape[1])
    table = map_table(path, shape, TableType.FLOAT32, embedding.tokenizer.unknown_id)
    with torch.no_grad():
        weight.copy_(torch.from_numpy(table.weight))
