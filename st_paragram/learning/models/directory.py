"""Model directories of all architectures as SentenceTransformers: save, load, check."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding import directory
from st_paragram.core.encoding.directory import check_free, read_configuration
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.model_files import check_dimension
from st_paragram.core.encoding.record import TrainingRecord
from st_paragram.core.encoding.table import TableType
from st_paragram.learning.models.architectures import architecture_named, architecture_of
from st_paragram.learning.models.encoder import with_unit_vectors


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
    """Save a pipeline under `path`, all of it or nothing.

    Args:
        model: `TokenEmbedding`, `MeanPool` and perhaps `Normalize`, or any pipeline of sentence-transformers' modules.
        path: output directory.
        card: text of the model card, `README.md`; a note on a table of float16, int8 or int4 is put at its end.
        overwrite: replace an existing model directory.
        dtype: store the table as float32, float16 (half the size) or int8 (a quarter); as it is if not given.
        truncate_dim: store the first components of each row only.
        training: what the training run was, kept as `training.json`.
        normalize: save an averaging model so that every reader gives embeddings of length 1; else as it is.

    Returns:
        The directory.

    Raises:
        ModelDirectoryError: the directory exists or cannot be written, or the pipeline cannot be kept in one.
        ParagramError: another run is writing the directory.
        SettingsError: no such type, a dimension below 1, numbers that do not fit the type, or a type or a dimension for
            a pipeline without a table.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-es", device="cpu")
        >>> st_paragram.save(model, "p-sp-small", dtype="int8", truncate_dim=64).name
        'p-sp-small'
    """
    check_free(path, overwrite)
    model = with_unit_vectors(model) if normalize else model
    write = partial(architecture_of(model).write, model, dtype=dtype, truncate_dim=truncate_dim)
    return directory.save(path, write, card, training.as_json() if training else None, overwrite)


def check_savable(model: SentenceTransformer) -> None:
    """Refuse early, before hours of training, a pipeline that `save` would refuse.

    Raises:
        ModelDirectoryError: modules that are neither ours nor sentence-transformers', or a tokenizer that cannot become
            a `tokenizer.json`.
    """
    architecture_of(model).check(model)


def load(name: str | Path, device: str | None = None, truncate_dim: int | None = None) -> SentenceTransformer:
    """Load a model directory.

    Args:
        name: a path, `p-sp-mini`, `p-sp-base`, or a hub id `owner/name` or `owner/name@revision`.
        device: torch device; chosen by sentence-transformers if not given.
        truncate_dim: keep the first components of each embedding only. An averaging model then loads no others: it is
            smaller, faster, and less exact.

    Returns:
        A `ParagramEncoder` of `TokenEmbedding`, `MeanPool` and perhaps `Normalize`, or the SentenceTransformer that was
        saved. A table of float16, int8 or int4 stays what it is, and becomes float32 only in an installation without
        compiled kernels.

    Raises:
        ModelDirectoryError: not found or a file is missing or damaged.
        SettingsError: a `truncate_dim` below 1.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-mini", device="cpu", truncate_dim=64)
        >>> model.encode(["a sentence"]).shape
        (1, 64)
    """
    check_dimension(truncate_dim)
    folder = find(name)
    configuration = read_configuration(folder)
    architecture = architecture_named(configuration.architecture, folder)
    return architecture.read(folder, configuration.values, device, truncate_dim)
