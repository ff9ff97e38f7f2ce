"""`embeddings.json`: what a folder of embeddings holds, of which texts, how it is read, and what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pydantic

from st_paragram.core.encoding.packing import NumberType
from st_paragram.core.files import (
    FileDescription,
    check_files,
    file_for_folder,
    read_json,
    write_json,
)
from st_paragram.errors import DAMAGED, StoreError, one_line
from st_paragram.tools.embed_files.settings import ShardFormat
from st_paragram.tools.embed_files.shards import ShardShape, shard_files

#: The file that every folder of embeddings has; it is written last.
DESCRIPTION_FILE = "embeddings.json"
FORMAT_VERSION = 1
_AGAIN = "make the embeddings again"
_SCALE_MEANING = "embedding = integers * scale, with one float32 scale for each row: its largest absolute value / 127"


@dataclass(frozen=True)
class ModelName:
    """The model.

    Attributes:
        name: As it was given.
        fingerprint: SHA-256 of its configuration, tokenizer and weights.
    """

    name: str
    fingerprint: str


@dataclass(frozen=True)
class InputText:
    """A text that was embedded.

    Attributes:
        path: As it was given.
        sha256: Of the file on disk; of its unpacked lines for standard input and other pipes.
        lines: Their number.
        blank: How many of them have only white space; they have the embedding of the unknown token.
    """

    path: str
    sha256: str
    lines: int
    blank: int


@dataclass(frozen=True)
class Shard:
    """A shard.

    Attributes:
        file: Its name.
        input: The number of the text, from 0.
        first_line: The number of the text's line that its first row is of, from 1.
        rows: Its rows; they are of neighboring lines.
        sha256: Of each of its files, by their names.
    """

    file: str
    input: int
    first_line: int
    rows: int
    sha256: Mapping[str, str]


@dataclass(frozen=True)
class Description:
    """What a folder of embeddings holds.

    Attributes:
        format_version: Of the folder.
        rows: Embeddings in all shards.
        dimension: Components of an embedding.
        dtype: Type of the numbers.
        scale: What the scales of int8 numbers mean; None for other types.
        normalized: Whether embeddings were scaled to length 1 before they were rounded.
        format: Of the shards.
        with_text: Whether the lines are in the shards.
        model: Which made the embeddings.
        inputs: The texts, in order.
        shards: In the order of the texts and their lines.
    """

    format_version: int
    rows: int
    dimension: int
    dtype: NumberType
    scale: str | None
    normalized: bool
    format: ShardFormat
    with_text: bool
    model: ModelName
    inputs: tuple[InputText, ...]
    shards: tuple[Shard, ...]

    def shape(self, shard: Shard) -> ShardShape:
        """What a shard holds."""
        return ShardShape(shard.rows, self.dimension, self.dtype, self.with_text)


def meaning_of_scales(dtype: NumberType) -> str | None:
    """What the scales of a type mean, if it has any."""
    return _SCALE_MEANING if dtype is NumberType.INT8 else None


def write_description(folder: Path, description: Description) -> None:
    """Write `embeddings.json`; the shards are there."""
    write_json(folder / DESCRIPTION_FILE, asdict(description))


def read_description(folder: Path) -> Description:
    """Read `embeddings.json`.

    Raises:
        StoreError: It is missing or damaged, or of another version of st_paragram.
    """
    path = folder / DESCRIPTION_FILE
    if wrong := file_for_folder(folder, "a folder of embeddings"):
        raise StoreError(f"{wrong}; give a folder from st-paragram embed --sharded")
    if not path.is_file():
        raise StoreError(f"{folder}: no {DESCRIPTION_FILE}; give a folder from st-paragram embed --sharded")
    try:
        values = read_json(path)
        version = values["format_version"]
        if version == FORMAT_VERSION:
            description = pydantic.TypeAdapter(Description).validate_python(values)
            _check(description)
            return description
    except DAMAGED as error:
        raise StoreError(f"{path}: damaged ({one_line(error, about=path)}); {_AGAIN}") from error
    raise StoreError(f"{path}: is of format {version!r}, and this version reads {FORMAT_VERSION}; update st_paragram")


def _check(description: Description) -> None:
    """Refuse what cannot be, so that no name leads out of the folder and no array is too large.

    Raises:
        ValueError: Something cannot be.
    """
    names = [shard.file for shard in description.shards]
    suffix = f".{description.format.value}"
    if any(Path(name).name != name or Path(name).suffix != suffix for name in names) or len(set(names)) < len(names):
        raise ValueError("names of shards that are not file names, or occur twice")
    if description.dimension < 1 or any(shard.rows < 1 for shard in description.shards):
        raise ValueError("shards without rows or components")
    if sum(shard.rows for shard in description.shards) != description.rows:
        raise ValueError(f"{description.rows} rows, which the shards do not have")
    for shard in description.shards:
        if set(shard.sha256) != {path.name for path in shard_files(Path(shard.file), description.dtype)}:
            raise ValueError(f"{shard.file}: not the checksums of its files")


def describe_embeddings(folder: Path) -> dict[str, Any]:
    """Describe a folder of embeddings; no shard is read.

    Raises:
        StoreError: it is none, its description is damaged, or a shard is missing.
    """
    properties = asdict(read_description(folder))
    written = {name: sha256 for shard in properties.pop("shards") for name, sha256 in shard["sha256"].items()}
    try:
        files = {name: FileDescription((folder / name).stat().st_size, sha256) for name, sha256 in written.items()}
    except OSError as error:
        raise StoreError(f"{folder}: a shard is missing ({one_line(error)}); {_AGAIN}") from error
    return {"name": folder.resolve().name, "properties": properties, "files": files}


def check_embeddings(folder: Path) -> str:
    """Compare the content of all shards with the description; says what was found.

    Raises:
        StoreError: see `describe_embeddings`; or a shard holds something else, or cannot be read.
    """
    summary = describe_embeddings(folder)
    check_files(folder, summary["files"], StoreError, _AGAIN)
    return f"{summary['properties']['rows']:,} embeddings, and all shards are what was written"
