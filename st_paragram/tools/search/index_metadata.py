"""What an index folder says of itself, `index.json`, and whether its files are what it says.

The folder holds `sentences/` (see `sentences`), `vectors.npy` (float16 or int8 (n, D), see `vectors`), for an inexact
index `part-0000.faiss` and so on, and `index.json`, which is written last, with size and SHA-256 of all the others and
a digest of itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from st_paragram.core.checksums import check_content, content_digests
from st_paragram.core.damage import DAMAGED, one_line, short
from st_paragram.core.files import FileDescription, FolderDescription, describe_files, digest, write_json
from st_paragram.core.json_files import read_json
from st_paragram.core.vectors.npy_shards import map_array
from st_paragram.errors import MiningError
from st_paragram.tools.search.content import Content
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.search.vectors import VectorType, blocks

METADATA_FILE, SENTENCES, VECTORS = "index.json", "sentences", "vectors.npy"
FORMAT_VERSION = 3
_OWN_DIGEST = "digest"
_MOST_EFFORT = 1 << 20
_AGAIN = "build the index again"


@dataclass(frozen=True)
class IndexMetadata:
    """Contents of `index.json`.

    Attributes:
        format_version: Of the folder.
        model: Name of the model, as it was given; of a hub id with the commit that was taken.
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
        content: What the texts are, see `Content`; written only if they are not sentences.
        files: All other files by their names.
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
    content: str = Content.SENTENCES.value
    files: dict[str, FileDescription] = field(default_factory=dict)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Rows of each inexact index."""
        return [] if self.factory == FLAT else list(blocks(self.sentences, self.part_rows))


def part_name(number: int) -> str:
    """File of an inexact index."""
    return f"part-{number:04d}.faiss"


def write_metadata(folder: Path, metadata: IndexMetadata) -> None:
    """Write `index.json`, all other files being there: the folder is complete then."""
    names = _names(metadata)
    digests = content_digests([folder / name for name in names])
    files = {
        name: asdict(FileDescription((folder / name).stat().st_size, sha256))
        for name, sha256 in zip(names, digests, strict=True)
    }
    values = asdict(metadata) | {"files": files}
    if metadata.content == Content.SENTENCES.value:  # versions that know no other content can read it
        del values["content"]
    write_json(folder / METADATA_FILE, values | {_OWN_DIGEST: digest(values)})


def read_metadata(folder: Path) -> IndexMetadata:
    """Read `index.json` and compare sizes with it; nothing is loaded, and no content compared (see `check_files`).

    Raises:
        MiningError: The folder is none of an index, is incomplete, damaged, or of another version.
    """
    path = folder / METADATA_FILE
    if not path.is_file():
        raise MiningError(f"{folder}: {_instead(folder)}; build one with st-paragram index")
    try:
        values: dict[str, Any] = read_json(path)
        version = values["format_version"]
        if version != FORMAT_VERSION:
            seen = f"format version {short(version)}, this st_paragram reads {FORMAT_VERSION}"
            raise MiningError(f"{path}: {seen}; {_AGAIN}")
        own, found = values.pop(_OWN_DIGEST), digest(values)
        files = {name: FileDescription(**each) for name, each in values.pop("files").items()}
        metadata = _checked(IndexMetadata(**values, files=files))
        if own != found:
            raise ValueError("its own digest is of other content")
        _check_sizes(folder, metadata)
    except DAMAGED as error:
        raise MiningError(f"{path}: not what st-paragram index writes ({one_line(error)}); {_AGAIN}") from error
    _check_vectors(folder / VECTORS, metadata)
    return metadata


def _instead(folder: Path) -> str:
    """What there is in place of an index."""
    if folder.is_dir():
        return "has no index.json: it is no index, or was never finished"
    return "is a file, and an index is a folder" if folder.exists() else "no such index folder"


def check_files(folder: Path, metadata: IndexMetadata) -> None:
    """Compare the content of every file with its SHA-256; reads them all.

    Raises:
        MiningError: A file holds something else, or cannot be read.
    """
    check_content(folder, metadata.files, METADATA_FILE, MiningError, _AGAIN)


def describe_index(folder: Path) -> FolderDescription:
    """Describe an index folder.

    Raises:
        MiningError: it is none, or is damaged.
    """
    properties = asdict(read_metadata(folder))
    del properties["files"]
    return FolderDescription(folder.resolve().name, properties, describe_files(folder))


def check_index(folder: Path) -> str:
    """Compare the content of all files of an index folder with its metadata; says what was found.

    Raises:
        MiningError: it is none, or is damaged.
    """
    metadata = read_metadata(folder)
    check_files(folder, metadata)
    return f"{metadata.sentences:,} sentences, and all files are what was written"


def _names(metadata: IndexMetadata) -> list[str]:
    texts = [f"{SENTENCES}/{name}" for name in ("text", "text.json", "starts.npy", "ends.npy", "lines.npy")]
    return [*texts, VECTORS, *(part_name(number) for number in range(len(metadata.parts)))]


def _checked(metadata: IndexMetadata) -> IndexMetadata:
    kinds = get_type_hints(IndexMetadata)
    for each in fields(IndexMetadata):
        value, kind = getattr(metadata, each.name), kinds[each.name]
        if type(value) is not getattr(kind, "__origin__", kind) and not (kind is float and type(value) is int):
            raise ValueError(f"{each.name} is {short(value)}")
    for name, least in (("sentences", 1), ("dimension", 1), ("part_rows", 1), ("neighbours", 0), ("effort", 0)):
        if not least <= getattr(metadata, name) <= (_MOST_EFFORT if name == "effort" else 2**62):
            raise ValueError(f"{name} is {short(getattr(metadata, name))}")
    VectorType(metadata.vector_type)
    Content(metadata.content)
    parts = 0 if metadata.factory == FLAT else -(-metadata.sentences // metadata.part_rows)
    if parts > len(metadata.files):  # before their names are made: there may be billions
        raise ValueError(f"{parts:,} parts, and {len(metadata.files)} files")
    return metadata


def _check_sizes(folder: Path, metadata: IndexMetadata) -> None:
    for name in _names(metadata):
        if not (folder / name).is_file():
            raise MiningError(f"{folder}: {name} is missing; {_AGAIN}")
        size, written = (folder / name).stat().st_size, metadata.files.get(name)
        wanted = None if written is None else written.size
        if size != wanted:
            raise MiningError(f"{folder}: {name} has {size} bytes where index.json says {short(wanted)}; {_AGAIN}")
    if unknown := set(metadata.files).difference(_names(metadata)):
        raise ValueError(f"it names {short(min(unknown))}, which is no file of such an index")


def _check_vectors(path: Path, metadata: IndexMetadata) -> None:
    try:
        map_array(path, metadata.vector_type, (metadata.sentences, metadata.dimension))
    except DAMAGED as error:
        raise MiningError(f"{path}: damaged, or not what index.json says ({one_line(error)}); {_AGAIN}") from error
