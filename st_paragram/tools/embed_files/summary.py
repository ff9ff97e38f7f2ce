"""What a folder of embeddings says of itself, and whether its shards are what was written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.checksums import content_digests
from st_paragram.core.damage import one_line
from st_paragram.core.files import FileDescription
from st_paragram.errors import StoreError
from st_paragram.tools.embed_files.description import DESCRIPTION_FILE, read_description

_AGAIN = "make the embeddings again"


@dataclass(frozen=True)
class EmbeddingsSummary:
    """What there is to tell of a folder of embeddings.

    Args:
        name: of the folder.
        properties: rows, dimension, type of the numbers, model, texts; see `Description`.
        files: of the shards by their names, with the checksums that were written down.
    """

    name: str
    properties: dict[str, Any]
    files: dict[str, FileDescription]


def describe_embeddings(folder: Path) -> EmbeddingsSummary:
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
    return EmbeddingsSummary(folder.resolve().name, properties, files)


def check_embeddings(folder: Path) -> str:
    """Compare the content of all shards with the description; says what was found.

    Raises:
        StoreError: see `describe_embeddings`; or a shard holds something else, or cannot be read.
    """
    summary = describe_embeddings(folder)
    try:
        found = content_digests([folder / name for name in summary.files])
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read ({one_line(error)}); {_AGAIN}") from error
    for (name, written), sha256 in zip(summary.files.items(), found, strict=True):
        if sha256 != written.sha256:
            raise StoreError(f"{folder / name}: damaged, its SHA-256 is not the one in {DESCRIPTION_FILE}; {_AGAIN}")
    return f"{summary.properties['rows']:,} embeddings, and all shards are what was written"
