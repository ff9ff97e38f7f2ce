"""What an index folder says of itself, `index.json`, and whether its files are what it says.

The folder holds `sentences/` (see `sentences`), `vectors.npy` (float16 or int8 (n, D), see `vectors`), for an inexact
index `part-0000.faiss` and so on, and `index.json`, which is written last.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from st_paragram.errors import MiningError
from st_paragram.files import write_json
from st_paragram.search.settings import FLAT
from st_paragram.search.vectors import VectorType, blocks

METADATA_FILE, SENTENCES, VECTORS = "index.json", "sentences", "vectors.npy"
FORMAT_VERSION = 2
_AGAIN = "build the index again"


@dataclass(frozen=True)
class IndexMetadata:
    """Contents of `index.json`.

    Attributes:
        format_version: Of the folder.
        model: Name of the model, as it was given.
        fingerprint: Of the model, see `model_directory.fingerprint`.
        source: The text, as it was given.
        lines: Of the text.
        sentences: Distinct ones, n.
        dimension: Components of a vector, D.
        vector_type: Of the vectors, see `VectorType`.
        factory: Flat, or faiss's factory string of an inexact index.
        part_rows: Rows of each inexact index; the last one may have fewer.
        effort: See `indexes.set_effort`; 0 for an exact search.
        recall: Share of a sample of queries whose nearest row is found with this effort; 1 for an exact search.
        recall_at_k: Share of their nearest rows that are found.
        neighbours: How many nearest rows the latter is about.
        files: Bytes of all other files by their names.
    """

    format_version: int
    model: str
    fingerprint: str
    source: str
    lines: int
    sentences: int
    dimension: int
    vector_type: str
    factory: str
    part_rows: int
    effort: int
    recall: float
    recall_at_k: float
    neighbours: int
    files: dict[str, int] = field(default_factory=dict)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Rows of each inexact index."""
        return [] if self.factory == FLAT else list(blocks(self.sentences, self.part_rows))


def part_name(number: int) -> str:
    """File of an inexact index."""
    return f"part-{number:04d}.faiss"


def write_metadata(folder: Path, metadata: IndexMetadata) -> None:
    """Write `index.json`, all other files being there: the folder is complete then."""
    files = {name: (folder / name).stat().st_size for name in _names(metadata)}
    write_json(folder / METADATA_FILE, asdict(metadata) | {"files": files})


def read_metadata(folder: Path) -> IndexMetadata:
    """Read `index.json` and compare the folder with it; nothing is loaded.

    Raises:
        MiningError: The folder is none of an index, is incomplete, damaged, or of another version.
    """
    path = folder / METADATA_FILE
    if not path.is_file():
        seen = "has no index.json: it is no index, or was never finished" if folder.is_dir() else "no such index folder"
        raise MiningError(f"{folder}: {seen}; build one with st-paragram index")
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = values["format_version"]
        if version != FORMAT_VERSION:
            raise MiningError(f"{path}: format version {version}, this st_paragram reads {FORMAT_VERSION}; {_AGAIN}")
        metadata = _checked(IndexMetadata(**values))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise MiningError(f"{path}: not what st-paragram index writes ({error}); {_AGAIN}") from error
    for name in _names(metadata):
        if not (folder / name).is_file():
            raise MiningError(f"{folder}: {name} is missing; {_AGAIN}")
        size, wanted = (folder / name).stat().st_size, metadata.files.get(name)
        if size != wanted:
            raise MiningError(f"{folder}: {name} has {size} bytes where index.json says {wanted}; {_AGAIN}")
    _check_vectors(folder / VECTORS, metadata)
    return metadata


def _names(metadata: IndexMetadata) -> list[str]:
    texts = [f"{SENTENCES}/{name}" for name in ("text", "text.json", "starts.npy", "ends.npy", "lines.npy")]
    return [*texts, VECTORS, *(part_name(number) for number in range(len(metadata.parts)))]


def _checked(metadata: IndexMetadata) -> IndexMetadata:
    kinds = get_type_hints(IndexMetadata)
    for each in fields(IndexMetadata):
        value, kind = getattr(metadata, each.name), kinds[each.name]
        if type(value) is not getattr(kind, "__origin__", kind) and not (kind is float and type(value) is int):
            raise ValueError(f"{each.name} is {value!r}")
    for name in ("sentences", "dimension", "part_rows"):
        if getattr(metadata, name) < 1:
            raise ValueError(f"{name} is {getattr(metadata, name)}")
    VectorType(metadata.vector_type)
    return metadata


def _check_vectors(path: Path, metadata: IndexMetadata) -> None:
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise MiningError(f"{path}: damaged ({error}); {_AGAIN}") from error
    if stored.shape != (metadata.sentences, metadata.dimension) or stored.dtype != metadata.vector_type:
        wanted = f"{metadata.vector_type} {(metadata.sentences, metadata.dimension)}"
        raise MiningError(f"{path}: {stored.dtype} {stored.shape} where index.json says {wanted}; {_AGAIN}")
