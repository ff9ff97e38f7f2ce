"""Averaging models as pipelines of `TokenEmbedding`, `MeanPool` and optionally `Normalize`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from st_paragram.core.embedding_table import TableType
from st_paragram.core.model_directory import model_files as files
from st_paragram.core.model_directory.model_files import PIPELINE_SETTINGS, AveragingModel
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.modules.compact_embedding import in_numpy, in_torch
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import TokenEmbedding, token_embedding


def averaging_embedding(model: SentenceTransformer) -> TokenEmbedding | None:
    """Return the first module if the pipeline only averages embeddings (and may normalize)."""
    modules = list(model._modules.values())
    if len(modules) not in (2, 3):
        return None
    first = modules[0]
    if not isinstance(first, TokenEmbedding) or type(modules[1]) is not MeanPool:
        return None
    kind = type(first)
    if (kind.forward, kind.preprocess) != (TokenEmbedding.forward, TokenEmbedding.preprocess):
        return None
    for last in modules[2:]:
        if type(last) is not Normalize:
            return None
        if {last.module_input_name, last.module_output_name} != {"sentence_embedding"}:
            return None
    return first


def gives_unit_vectors(model: SentenceTransformer) -> bool:
    """Whether an averaging model ends with `Normalize`, so that its embeddings have length 1."""
    return averaging_embedding(model) is not None and len(model._modules) == 3


def embedding_of(model: SentenceTransformer) -> TokenEmbedding:
    """Return the first module of an averaging model; refuse other pipelines."""
    embedding = averaging_embedding(model)
    if embedding is None:
        kinds = " and ".join(type(module).__name__ for module in model)
        raise ModelDirectoryError(
            f"a pipeline of {kinds}; give an averaging model (TokenEmbedding and MeanPool)"
        )
    return embedding


def pipeline_settings(model: SentenceTransformer) -> dict[str, Any]:
    """Return the settings of a pipeline: prompts, similarity and the like."""
    return {name: getattr(model, name) for name in PIPELINE_SETTINGS}


def write(
    model: SentenceTransformer,
    folder: Path,
    dtype: TableType | str | None = None,
    truncate_dim: int | None = None,
) -> None:
    """Write an averaging model's files without a model card; see `model_files.write`."""
    embedding = embedding_of(model)
    parts = AveragingModel(
        embedding.tokenizer,
        in_numpy(embedding.embedding),
        gives_unit_vectors(model),
        pipeline_settings(model),
        embedding.dropout,
    )
    files.write(parts, folder, dtype, truncate_dim)


def read(
    folder: Path, values: dict[str, Any], truncate_dim: int | None = None
) -> tuple[TokenEmbedding, AveragingModel]:
    """Read the first module and the model of a folder whose `st_paragram.json` has `values`."""
    model = files.read(folder, values, truncate_dim)
    weights = in_torch(model.table)
    return token_embedding(model.tokenizer, weights=weights, dropout=model.dropout), model
