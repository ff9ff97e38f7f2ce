"""Model directories as SentenceTransformers: averaging models, and pipelines with additional files."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from sentence_transformers import SentenceTransformer

from st_paragram.core.embedding_table import TableType
from st_paragram.core.families import entry_of_architecture
from st_paragram.core.model_directory import model_files
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    STOCK_CONFIG_FILE,
    check_architecture,
    check_free,
    read_configuration,
    save_directory,
)
from st_paragram.core.model_directory.find import find
from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, refused
from st_paragram.learning.models import averaging, pipeline_files
from st_paragram.learning.models.sentence_transformers_encoder import pipeline, with_unit_vectors

logger = logging.getLogger(__name__)


def save(
    model: SentenceTransformer,
    path: str | Path,
    card: str = "",
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
        card: Text of the model card, `README.md`; a note on a table of float16, int8 or int4 is
            appended.
        overwrite: Replace an existing model directory.
        dtype: Number type of the table: float32, float16 (half the size), int8 (a quarter) or int4;
            None: unchanged.
        truncate_dim: Number of first dimensions to keep; None: all.
        training: Record of the training run, stored as `training.json`.
        normalize: Save an averaging model so that every library gives embeddings of length 1.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-es", device="cpu")
        >>> st_paragram.save(model, "p-sp-small", dtype="int8", truncate_dim=64).name
        'p-sp-small'
    """
    check_free(path, overwrite)
    model = with_unit_vectors(model) if normalize else model
    if averaging.averaging_embedding(model) is not None:
        write = partial(averaging.write, model, dtype=dtype, truncate_dim=truncate_dim)
    elif dtype is None and truncate_dim is None:
        write = partial(pipeline_files.write, model)
    else:
        raise SettingsError(
            "only averaging models can be made smaller; leave dtype and truncate_dim out"
        )
    return save_directory(path, write, card, training.as_json() if training else None, overwrite)


def check_savable(model: SentenceTransformer) -> None:
    """Refuse early, before hours of training, a pipeline that `save` would refuse."""
    if (embedding := averaging.averaging_embedding(model)) is not None:
        model_files.stock_tokenizer(embedding.tokenizer)
    pipeline_files.check(model)


def load(
    name: str | Path, device: str | None = None, truncate_dim: int | None = None
) -> SentenceTransformer:
    """Load a model directory, or any folder written by `save_pretrained` with
    sentence-transformers' or our modules.

    Averaging models become a `ParagramEncoder`, other models the SentenceTransformer that was
    saved. A table of float16, int8 or int4 keeps its type; it becomes float32 only in an
    installation without compiled kernels.

    Args:
        name: A path, `p-sp-mini`, `p-sp-base`, or a hub id `owner/name` or `owner/name@revision`.
        device: Torch device; None: chosen by sentence-transformers.
        truncate_dim: Number of first dimensions to keep; None: all. An averaging model loads only
            these: it is smaller, faster and less accurate.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-mini", device="cpu", truncate_dim=64)
        >>> model.encode(["a sentence"]).shape
        (1, 64)
    """
    model_files.check_dimension(truncate_dim)
    folder = find(name)
    configuration = read_configuration(folder)
    check_architecture(configuration.architecture, folder)
    model: SentenceTransformer
    if configuration.architecture == AVERAGING:
        embedding, stored = averaging.read(folder, configuration.values, truncate_dim)
        with refused(
            ModelDirectoryError, folder / STOCK_CONFIG_FILE, "not readable", "save the model again"
        ):
            model = pipeline(embedding, device, stored.unit_vectors, **stored.settings)
        if isinstance(tokenizer := stored.tokenizer, BilingualTokenizer):
            both, read = " and ".join(tokenizer.languages), tokenizer.language
            logger.warning(
                f"{folder}: separate vocabularies for {both}; texts are read as {read} by default"
            )
    else:
        model = pipeline_files.read(folder, device, truncate_dim)
    if entry := entry_of_architecture(configuration.architecture):
        model = entry.module("sentence_transformers_encoder").read_beside(
            model, folder, configuration.values
        )
    # as in sentence-transformers, so that saving the model keeps its card
    if (card := folder / "README.md").is_file():
        model._model_card_text = card.read_text(encoding="utf-8", errors="replace")  # type: ignore[assignment]
    return model.eval()
