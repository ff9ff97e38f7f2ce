"""What an index folder says of itself, read from its metadata."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.files import FileDescription, describe_files
from st_paragram.tools.search.index_metadata import check, read_metadata


@dataclass(frozen=True)
class IndexDescription:
    """What there is to tell of an index folder.

    Args:
        name: of the folder.
        properties: its metadata: model, text, sentences, dimension, kind of index, recall; see `IndexMetadata`.
        files: by their names.
    """

    name: str
    properties: dict[str, Any]
    files: dict[str, FileDescription]


def describe_index(folder: Path) -> IndexDescription:
    """Describe an index folder.

    Raises:
        MiningError: it is none, or is damaged.
    """
    properties = asdict(read_metadata(folder))
    del properties["files"]
    return IndexDescription(folder.resolve().name, properties, describe_files(folder))


def check_index(folder: Path) -> str:
    """Compare the content of all files of an index folder with its metadata; says what was found.

    Raises:
        MiningError: it is none, or is damaged.
    """
    metadata = check(folder)
    return f"{metadata.sentences:,} sentences, and all files are what was written"
