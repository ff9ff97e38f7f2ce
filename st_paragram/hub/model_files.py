"""The files of a model directory that are uploaded: those of the model and no others, after they were checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from st_paragram.core.encoding import checksums_file
from st_paragram.core.encoding.configuration import (
    AVERAGING,
    CHECKSUMS_FILE,
    STOCK_CONFIG_FILE,
    TRAINING_FILE,
    read_configuration,
)
from st_paragram.core.encoding.record import read_training_record
from st_paragram.core.encoding.stock_files import MODULES_FILE
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.models import directory as model_directory

# What an averaging model can do without: it is rebuilt, or not known where the model came from the hub.
_MADE_ANEW = {MODULES_FILE, "tokenizer.json", TRAINING_FILE}
_LEFT_OF_DIGEST = 66


@dataclass(frozen=True)
class ModelFiles:
    """A sound model.

    Args:
        folder: where its files are.
        names: of the files to upload, with slashes, without the card; sorted.
        dimension: components of an embedding.
    """

    folder: Path
    names: tuple[str, ...]
    dimension: int

    @property
    def opens_in_stock(self) -> bool:
        """Whether sentence-transformers opens the model without this package."""
        modules = self.folder / MODULES_FILE
        return MODULES_FILE in self.names and b'"st_paragram.' not in modules.read_bytes()


@contextmanager
def model_files(folder: Path) -> Iterator[ModelFiles]:
    """Check a model directory, and give the files that make the model in the form that every reader opens.

    What was not saved with the model (checkpoints, notes, hidden files) is not among them. A directory without
    checksums, and an averaging model without the files of stock readers, is written again in a temporary folder.

    Raises:
        ModelDirectoryError: it is none, a file is missing or is not what was saved, or the model cannot be loaded.
    """
    compared = checksums_file.check(folder)
    model = model_directory.load(folder, device="cpu")
    dimension = int(model.get_embedding_dimension() or 0)
    names = _listed(folder) if compared else []
    missing = {name for name in names if not (folder / name).is_file()}
    if missing and not (_is_averaging(folder) and missing <= _MADE_ANEW):
        raise ModelDirectoryError(
            f"{folder}: {', '.join(sorted(missing))} of {CHECKSUMS_FILE} is missing; fetch or save the model again"
        )
    if compared and not missing:
        yield ModelFiles(folder, _with_settings(folder, names), dimension)
        return
    with TemporaryDirectory(prefix="st_paragram-push-") as temporary:
        again = Path(temporary) / folder.resolve().name
        model_directory.save(model, again, training=read_training_record(folder))
        yield ModelFiles(again, _with_settings(again, _listed(again)), dimension)


def _is_averaging(folder: Path) -> bool:
    return read_configuration(folder).architecture == AVERAGING


def _listed(folder: Path) -> list[str]:
    """The names in a file of checksums that was read before."""
    lines = (folder / CHECKSUMS_FILE).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    names = [line[_LEFT_OF_DIGEST:] for line in lines]
    return [name for name in names if not any(part.startswith(".") for part in name.split("/"))]


def _with_settings(folder: Path, names: list[str]) -> tuple[str, ...]:
    """With the two files that have no checksum: that of prompts and similarity, and that of checksums."""
    beside = [name for name in (STOCK_CONFIG_FILE, CHECKSUMS_FILE) if (folder / name).is_file()]
    return tuple(sorted({*names, *beside}))
