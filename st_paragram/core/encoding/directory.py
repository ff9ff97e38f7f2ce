"""Model directories as a whole: written all or not at all, with card, record of the training and checksums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from st_paragram.core.encoding import checksums_file
from st_paragram.core.encoding.configuration import CONFIG_FILE, TRAINING_FILE, read_configuration
from st_paragram.core.encoding.table import TableType
from st_paragram.core.files import atomic_folder, check_output_folder, output_lock
from st_paragram.errors import ModelDirectoryError

_TABLE_NOTES = {
    TableType.FLOAT16: """
## Table of float16

Half the size of float32. `st_paragram.load` averages in float32; a stock `SentenceTransformer` computes and returns
float16.
""",
    TableType.INT8: """
## Table of int8

A quarter of the size of float32: 8-bit integers with one scale a row. `st_paragram.load` keeps them as they are in
memory. A stock `SentenceTransformer` reads them as float32 since sentence-transformers 6.2; an older one stops with
an error about tensors that "can require gradients".
""",
    TableType.INT4: """
## Table of int4

An eighth of the size of float32: 4-bit integers, two a byte, with one scale a row. `st_paragram.load` keeps them as
they are in memory. `SentenceTransformer` opens the model where st_paragram is installed, with `trust_remote_code=True`.
""",
}


@dataclass(frozen=True)
class Files:
    """What is in a model directory besides the model.

    Attributes:
        card: text of the model card, `README.md`; none if empty.
        training: text of `training.json`, or None.
    """

    card: str = ""
    training: str | None = None


def save(path: str | Path, write: Callable[[Path], None], files: Files, overwrite: bool = False) -> Path:
    """Make a model directory, all of it or nothing.

    Args:
        path: output directory.
        write: writes the model into a folder that it makes.
        files: what else is in the directory; the card ends with a note on a table of float16, int8 or int4.
        overwrite: replace an existing model directory.

    Returns:
        The directory.

    Raises:
        ModelDirectoryError: the directory exists or cannot be written.
        ParagramError: another run is writing the directory.
    """
    path = Path(path)
    check = partial(check_free, path, overwrite)
    with output_lock(path, check), atomic_folder(path) as new:
        write(new)
        card = _with_note(files.card, table_note(read_configuration(new).values.get("table_type")))
        if card:
            (new / "README.md").write_text(card.lstrip("\n"), encoding="utf-8")
        if files.training:
            (new / TRAINING_FILE).write_text(files.training, encoding="utf-8")
        checksums_file.write_checksums(new)
    return path


def _with_note(card: str, note: str) -> str:
    """The card, with the note at its end unless it has it, and without that on int4 which the original may have."""
    return card if note and note in card else card.replace(_TABLE_NOTES[TableType.INT4], "") + note


def check_free(path: str | Path, overwrite: bool = False) -> None:
    """Refuse early, before hours of training, a place that `save` would refuse.

    Raises:
        ModelDirectoryError: `path` exists, and is not a model directory or must not be overwritten; or it cannot be
            made.
    """
    check_output_folder(Path(path), overwrite, CONFIG_FILE, "model directory of st_paragram", ModelDirectoryError)


def table_note(table_type: str | None) -> str:
    """What readers should know of a table of this type; empty for float32, or for models without a table."""
    return _TABLE_NOTES.get(TableType(table_type), "") if table_type else ""
