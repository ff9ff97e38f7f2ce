"""Save and load averaging models and pipelines as model directories."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_paragram.core.embedding_table import TableType
from st_paragram.core.model_directory import model_files
from st_paragram.core.model_directory.card import new_card
from st_paragram.core.model_directory.configuration import (
    STOCK_CONFIG_FILE,
    check_free,
    save_directory,
)
from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, refused
from st_paragram.learning.models import averaging, pipeline_files
from st_paragram.learning.models.sentence_transformers_encoder import (
    ParagramEncoder,
    pipeline,
    with_unit_vectors,
)

logger = logging.getLogger(__name__)


def save(
    model: SentenceTransformer,
    path: str | Path,
    card: str | None = None,
    overwrite: bool = False,
    dtype: TableType | str | None = None,
    truncate_dim: int | None = None,
    training: TrainingRecord | None = None,
    normalize: bool = False,
) -> Path:
    """Save a pipeline as `path`, all of it or nothing; return the directory.

    Args:
        model: `TokenEmbedding`, `MeanPool` and optionally `Normalize`, or any pipeline of
            sentence-transformers.
        path: Output directory.
        card: Text of the model card, `README.md`; None: how to load the model, and that it has no
            license yet. A note on a table of float16, int8 or int4 is appended.
        overwrite: Replace an existing model directory.
        dtype: Number type of the table: float32, float16 (half the size), int8 (a quarter) or int4;
            None: unchanged.
        truncate_dim: Number of first dimensions to keep; None: all.
        training: Record of the training run, stored as `training.json`.
        normalize: Save an averaging model so that every library gives embeddings of length 1.

    Examples:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-es", device="cpu")
        >>> st_paragram.save(model, "p-sp-small", dtype="int8", truncate_dim=64).name
        'p-sp-small'
    """
    check_free(path, overwrite, create_parents=True)
    model = with_unit_vectors(model) if normalize else model
    if averaging.averaging_embedding(model) is not None:
        write = partial(averaging.write, model, dtype=dtype, truncate_dim=truncate_dim)
    elif dtype is None and truncate_dim is None:
        write = partial(pipeline_files.write, model)
    else:
        raise SettingsError(
            "only averaging models can be made smaller; leave dtype and truncate_dim out"
        )
    text: str | Callable[[Path], str] | None = card
    if text is None:
        dimension = truncate_dim or model.get_embedding_dimension() or 0
        text = partial(new_card, Path(path).resolve().name, dimension)
    return save_directory(path, write, text, training.as_json() if training else None, overwrite)


def check_savable(model: SentenceTransformer) -> None:
    """Refuse early, before hours of training, a pipeline that `save` would refuse."""
    if (embedding := averaging.averaging_embedding(model)) is not None:
        model_files.check_tokenizer(embedding.tokenizer)
    pipeline_files.check(model)


def load_averaging(
    folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None
) -> ParagramEncoder:
    """Load an averaging model, with the `values` of its configuration."""
    embedding, stored = averaging.read(folder, values, truncate_dim)
    with refused(
        ModelDirectoryError, folder / STOCK_CONFIG_FILE, "not readable", "save the model again"
    ):
        model = pipeline(embedding, device, stored.unit_vectors, **stored.settings)
    tokenizer = stored.tokenizer
    if isinstance(tokenizer, BilingualTokenizer):
        languages = " and ".join(tokenizer.languages)
        logger.warning(
            f"{folder}: separate vocabularies for {languages}; texts are read as"
            f" {tokenizer.language} by default"
        )
    return model


def load_pipeline(
    folder: Path, device: str | None, truncate_dim: int | None
) -> SentenceTransformer:
    """Load a pipeline of sentence-transformers' or our modules."""
    return pipeline_files.read(folder, device, truncate_dim)
