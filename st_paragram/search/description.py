"""What an index folder says of itself, read from its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from st_paragram.files import FileDescription, describe_files
from st_paragram.search.index_metadata import IndexMetadata, read_metadata


@dataclass(frozen=True)
class IndexDescription:
    """What there is to tell of an index folder.

    Args:
        name: of the folder.
        index: its metadata: model, text, sentences, dimension, kind of index, recall.
        files: by their names.
    """

    name: str
    index: IndexMetadata
    files: dict[str, FileDescription]


def describe_index(folder: Path) -> IndexDescription:
    """Describe an index folder.

    Raises:
        MiningError: it is none, or is damaged.
    """
    return IndexDescription(folder.resolve().name, read_metadata(folder), describe_files(folder))
