"""The files of a model directory that are uploaded: those of the model and no others, after it was read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from st_paragram.core.encoding.directory import AVERAGING, MODULES_FILE, read_configuration
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.record import read_training_record, training_text
from st_paragram.learning.models import directory as model_directory


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
    """Read a model and write it again in a temporary folder, in the form that every reader opens.

    What was not saved with the model (checkpoints, notes, hidden files) is not among its files.

    Raises:
        ModelDirectoryError: it is none, or it cannot be loaded.
    """
    with TemporaryDirectory(prefix="st_paragram-push-") as temporary:
        again = Path(temporary) / folder.resolve().name
        if read_configuration(folder).architecture == AVERAGING:
            encoder = Encoder(folder)
            dimension = encoder.dimension
            encoder.save(again, training=training_text(folder))
        else:
            model = model_directory.load(folder, device="cpu")
            dimension = int(model.get_embedding_dimension() or 0)
            model_directory.save(model, again, training=read_training_record(folder))
        (again / "README.md").unlink(missing_ok=True)
        names = sorted(path.relative_to(again).as_posix() for path in again.rglob("*") if path.is_file())
        yield ModelFiles(again, tuple(names), dimension)
