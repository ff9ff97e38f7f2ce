"""Model directories: save, load, check and tell them apart. What they may hold is in `architectures`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sentence_transformers import SentenceTransformer

from st_paragram.damage import one_line
from st_paragram.errors import ModelDirectoryError
from st_paragram.files import atomic_folder, check_output_folder, output_lock
from st_paragram.models import averaging, checksums_file
from st_paragram.models.architectures import architecture_named, architecture_of
from st_paragram.models.card import table_note
from st_paragram.models.configuration import AVERAGING, CONFIG_FILE, file_of, read_configuration
from st_paragram.models.encoder import with_unit_vectors
from st_paragram.models.find import find
from st_paragram.models.training_record import TRAINING_FILE, TrainingRecord
from st_paragram.modules.compact_embedding import TableType
from st_paragram.modules.token_embedding import WEIGHTS_FILE


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
        path: the directory to make.
        card: text of the model card, `README.md`; a note on a table of float16 or int8 is put at its end.
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
        SettingsError: no such type, a dimension below 1, numbers too large for float16, or a type or a dimension for
            a pipeline without a table.
    """
    path = Path(path)
    check_free(path, overwrite)
    model = with_unit_vectors(model) if normalize else model
    architecture = architecture_of(model)
    architecture.check(model)
    with output_lock(path, partial(check_free, path, overwrite), ModelDirectoryError), atomic_folder(path) as new:
        architecture.write(model, new, dtype, truncate_dim)
        note = table_note(read_configuration(new).values.get("table_type"))
        if note not in card:
            card += note
        if card:
            (new / "README.md").write_text(card.lstrip("\n"), encoding="utf-8")
        if training:
            (new / TRAINING_FILE).write_text(training.as_json(), encoding="utf-8")
        checksums_file.write_checksums(new)
    return path


def check_free(path: str | Path, overwrite: bool = False) -> None:
    """Refuse early, before hours of training, a place that `save` would refuse.

    Raises:
        ModelDirectoryError: `path` exists, and is no model directory or must not be overwritten; or it cannot be made.
    """
    check_output_folder(Path(path), overwrite, CONFIG_FILE, "model directory of st_paragram", ModelDirectoryError)


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
        name: a path, a name under `$ST_PARAGRAM_HOME` or in the user's cache, or a hub id `owner/name` or
            `owner/name@revision`.
        device: torch device; chosen by sentence-transformers if not given.
        truncate_dim: keep the first components of each embedding only. An averaging model then loads no others: it is
            smaller, faster, and less exact.

    Returns:
        A `ParagramEncoder` of `TokenEmbedding`, `MeanPool` and perhaps `Normalize`, or the SentenceTransformer that was
        saved. A table of float16 or int8 stays what it is, and becomes float32 only in an installation without compiled
        kernels.

    Raises:
        ModelDirectoryError: not found (the message lists where it looked), or a file is missing, damaged, or not what
            was saved.
        SettingsError: a `truncate_dim` below 1.
    """
    averaging.check_dimension(truncate_dim)
    folder = find(name)
    configuration = read_configuration(folder)
    architecture = architecture_named(configuration.architecture, folder)
    model = architecture.read(folder, configuration.values, device, truncate_dim)
    checksums_file.check(folder)
    return model


def fingerprint(folder: Path) -> str:
    """What tells a model directory from another: SHA-256 of its configuration, tokenizer and weights.

    Raises:
        ModelDirectoryError: it is none, or a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in _files(folder):
        try:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise ModelDirectoryError(f"{path}: cannot be read ({one_line(error)}); check the file") from error
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """The files that make a model."""
    for pattern in architecture_named(read_configuration(folder).architecture, folder).files:
        if "*" not in pattern:
            yield file_of(folder, pattern)
        else:
            yield from sorted(path for path in folder.rglob(pattern) if path.name != TRAINING_FILE)


def table_type(folder: Path) -> TableType:
    """How the numbers of an averaging model's table are stored.

    Raises:
        ModelDirectoryError: another model, which has no such table.
    """
    configuration = read_configuration(folder)
    if configuration.architecture != AVERAGING:
        raise ModelDirectoryError(
            f"{folder}: a model of architecture {configuration.architecture!r}; only averaging models have a table "
            "that can be stored in another type or with fewer components"
        )
    return TableType(averaging.checked(folder, configuration.values).table_type)


def weights_size(folder: Path) -> int:
    """Bytes of a model directory's weights."""
    weights = sorted(folder.rglob("*.safetensors")) or [file_of(folder, WEIGHTS_FILE)]
    return sum(path.stat().st_size for path in weights)
