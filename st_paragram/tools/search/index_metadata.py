"""What an index folder says of itself, `index.json`, and whether its files are what it says.

The folder holds `sentences/` (see `sentences`), `vectors.npy` (float16 or int8 (n, D), see `vectors`), for an inexact
index `part-0000.faiss` and so on, and `index.json`, which is written last, with size and SHA-256 of all the others and
a digest of itself.

Sentences with fields have a folder `fields/`, too (see `fields`). An index that was changed has segments, folders
`segment-0001/` and so on with sentences, vectors and fields that were added, and `deleted-0002.npy`, a bit for each row
of all segments. No file is changed: a change writes new ones, and then replaces `index.json`, which names them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from st_paragram.core.files import (
    FileDescription,
    atomic,
    check_files,
    content_digest,
    describe_files,
    digest,
    file_for_folder,
    read_json,
)
from st_paragram.errors import DAMAGED, MiningError, one_line, short
from st_paragram.tools.embed_files.shards import map_array
from st_paragram.tools.search.content import Content
from st_paragram.tools.search.fields import FIELDS, FieldRecord, Kind, field_files
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.search.vectors import VectorType, blocks

METADATA_FILE, SENTENCES, VECTORS = "index.json", "sentences", "vectors.npy"
FORMAT_VERSION = 3
CHANGED_VERSION = 4  # of a folder with fields, or one that was changed since it was built
_OWN_DIGEST = "digest"
_FOLDER, _DELETED = re.compile(r"(segment-\d{4,9})?"), re.compile(r"(deleted-\d{4,9}\.npy)?")
_MOST_EFFORT = 1 << 20
TRIES = 10  # to read a folder that others keep changing
_AGAIN = "build the index again"


@dataclass(frozen=True)
class Segment:
    """Sentences that were added together.

    Attributes:
        folder: Its folder, within that of the index; empty for the index's folder itself.
        lines: Of the text.
        sentences: Distinct ones, n.
        fields: Of the sentences.
    """

    folder: str
    lines: int
    sentences: int
    fields: list[FieldRecord] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Its files, by their paths within the folder of the index."""
        texts = [f"{SENTENCES}/{name}" for name in ("text", "text.json", "starts.npy", "ends.npy", "lines.npy")]
        numbered = enumerate(self.fields)
        columns = [f"{FIELDS}/{name}" for number, each in numbered for name in field_files(number, each.kind)]
        return [f"{self.folder}/{name}" if self.folder else name for name in (*texts, VECTORS, *columns)]


@dataclass(frozen=True)
class IndexMetadata:
    """Contents of `index.json`.

    Attributes:
        format_version: Of the folder; 4 if any of the values from `generation` on is in use, otherwise 3.
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
        generation: How often the folder was changed since it was built.
        folder: Of the first segment, whose sentences, vectors and indexes the values above are about; see `Segment`.
        fields: Of the first segment.
        segments: The others.
        deleted: Rows that are deleted.
        deleted_file: Which ones; empty if none is.
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
    generation: int = 0
    folder: str = ""
    fields: list[FieldRecord] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    deleted: int = 0
    deleted_file: str = ""

    @property
    def all_segments(self) -> list[Segment]:
        """The first one, and the others."""
        return [Segment(self.folder, self.lines, self.sentences, self.fields), *self.segments]

    @property
    def all_lines(self) -> int:
        """Lines of all texts: the next one has the number after it."""
        return sum(segment.lines for segment in self.all_segments)

    @property
    def rows(self) -> int:
        """Rows of all segments."""
        return sum(segment.sentences for segment in self.all_segments)

    @property
    def changed(self) -> bool:
        """Whether it needs the newer format."""
        return bool(self.generation or self.fields)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Rows of each inexact index."""
        return [] if self.factory == FLAT else list(blocks(self.sentences, self.part_rows))


def part_name(number: int) -> str:
    """File of an inexact index."""
    return f"part-{number:04d}.faiss"


def write_metadata(
    folder: Path, metadata: IndexMetadata, known: Mapping[str, FileDescription] | None = None, sync: bool = False
) -> IndexMetadata:
    """Write `index.json`, all other files being there: the folder is complete then; returns what it says.

    Args:
        folder: Of the index.
        metadata: Of the index; its version and files are not looked at.
        known: Files whose digests are known already.
        sync: Have everything on disk first, and then the change of `index.json`: it is there after a power cut, or not.
    """
    known = known or {}
    names = file_names(metadata)
    new = [name for name in names if name not in known]
    digests = [content_digest(folder / name) for name in new]
    described = {
        n: FileDescription((folder / n).stat().st_size, sha256) for n, sha256 in zip(new, digests, strict=True)
    }
    version = CHANGED_VERSION if metadata.changed else FORMAT_VERSION
    files = {name: described.get(name) or known[name] for name in names}
    metadata = replace(metadata, format_version=version, files=files)
    values = asdict(metadata)
    if metadata.content == Content.SENTENCES.value:  # versions that know no other content can read it
        del values["content"]
    if not metadata.changed:  # nor the format of changed indexes
        for name in _CHANGES:
            del values[name]
    if sync:
        _sync(folder, new)
    text = json.dumps(values | {_OWN_DIGEST: digest(values)}, indent=1, ensure_ascii=False) + "\n"
    with atomic(folder / METADATA_FILE) as handle:
        handle.write(text.encode("utf-8"))
        if sync:
            handle.flush()
            os.fsync(handle.fileno())
    if sync:
        _sync(folder, [METADATA_FILE])
    return metadata


_CHANGES = ("generation", "folder", "fields", "segments", "deleted", "deleted_file")


def _sync(folder: Path, names: list[str]) -> None:
    """Have files on disk, and the folders that name them."""
    folders = {parent for name in names for parent in (folder / name).parents if parent.is_relative_to(folder)}
    for path in (*(folder / name for name in names), *sorted(folders, reverse=True)):
        with suppress(OSError):  # a system may refuse that for folders
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def read_metadata(folder: Path) -> IndexMetadata:
    """Read `index.json` and compare sizes with it; nothing is loaded, and no content is compared (see `check_index`).

    Raises:
        MiningError: The folder is none of an index, is incomplete, damaged, or of another version.
    """
    for _ in range(TRIES):
        state = folder_state(folder)
        try:
            return _read(folder)
        except MiningError as error:
            if folder_state(folder) == state:
                raise
            failed = error  # a writer replaced `index.json`, and removed files that the former one names
    raise failed


def folder_state(folder: Path) -> tuple[int, int, int] | None:
    """What differs when `index.json` was replaced; None: it is not there."""
    try:
        status = (folder / METADATA_FILE).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read(folder: Path) -> IndexMetadata:
    path = folder / METADATA_FILE
    if not path.is_file():
        seen = file_for_folder(folder, "an index folder") or f"{folder}: {_instead(folder)}"
        raise MiningError(f"{seen}; build one with st-paragram index")
    try:
        values: dict[str, Any] = read_json(path)
        version = values["format_version"]
        if version not in (FORMAT_VERSION, CHANGED_VERSION):
            seen = f"format version {short(version)}, this st_paragram reads {FORMAT_VERSION} and {CHANGED_VERSION}"
            raise MiningError(f"{path}: {seen}; {_AGAIN}")
        own, found = values.pop(_OWN_DIGEST), digest(values)
        files = {name: FileDescription(**each) for name, each in values.pop("files").items()}
        values["fields"] = [FieldRecord(**each) for each in values.pop("fields", [])]
        values["segments"] = [_segment(each) for each in values.pop("segments", [])]
        metadata = _checked(IndexMetadata(**values, files=files))
        if own != found:
            raise ValueError("its own digest is of other content")
        _check_sizes(folder, metadata)
    except DAMAGED as error:
        raise MiningError(f"{path}: not what st-paragram index writes ({one_line(error)}); {_AGAIN}") from error
    for segment in metadata.all_segments:
        _check_vectors(folder / segment.folder / VECTORS, metadata, segment.sentences)
    return metadata


def _segment(values: dict[str, Any]) -> Segment:
    return Segment(**values | {"fields": [FieldRecord(**each) for each in values["fields"]]})


def _instead(folder: Path) -> str:
    """What there is in place of an index."""
    if folder.is_dir():
        return "has no index.json: it is not an index, or was never finished"
    return "no such index folder"


def describe_index(folder: Path) -> dict[str, Any]:
    """Describe an index folder.

    Raises:
        MiningError: it is none, or is damaged.
    """
    metadata = read_metadata(folder)
    properties = asdict(metadata)
    for name in ("files", *_CHANGES):
        del properties[name]
    if metadata.changed:
        kinds = {each.name: each.kind for segment in metadata.all_segments for each in segment.fields}
        properties |= {"lines": metadata.all_lines, "sentences": metadata.rows - metadata.deleted}
        properties |= {"deleted": metadata.deleted, "segments": len(metadata.all_segments)}
        properties |= {"changes": metadata.generation, "fields": kinds}
    return {"name": folder.resolve().name, "properties": properties, "files": describe_files(folder)}


def check_index(folder: Path) -> str:
    """Compare the content of all files of an index folder with its metadata; says what was found.

    Raises:
        MiningError: it is none, or is damaged.
    """
    metadata = read_metadata(folder)
    check_files(folder, metadata.files, MiningError, _AGAIN)
    return f"{metadata.rows - metadata.deleted:,} sentences, and all files are what was written"


def file_names(metadata: IndexMetadata) -> list[str]:
    """All files of an index but `index.json`, by their paths within its folder."""
    first, *others = metadata.all_segments
    prefix = f"{first.folder}/" if first.folder else ""
    parts = [f"{prefix}{part_name(number)}" for number in range(len(metadata.parts))]
    added = [name for segment in others for name in segment.names]
    return [*first.names, *parts, *added, *([metadata.deleted_file] if metadata.deleted_file else [])]


def _checked(metadata: IndexMetadata) -> IndexMetadata:
    _check_types(metadata)
    for name, least in (("sentences", 1), ("dimension", 1), ("part_rows", 1), ("neighbours", 0), ("effort", 0)):
        if not least <= getattr(metadata, name) <= (_MOST_EFFORT if name == "effort" else 2**62):
            raise ValueError(f"{name} is {short(getattr(metadata, name))}")
    VectorType(metadata.vector_type)
    Content(metadata.content)
    parts = 0 if metadata.factory == FLAT else -(-metadata.sentences // metadata.part_rows)
    if parts > len(metadata.files):  # before their names are made: there may be billions
        raise ValueError(f"{parts:,} parts, and {len(metadata.files)} files")
    if odd := [name for name, each in metadata.files.items() if not re.fullmatch("[0-9a-f]{64}", str(each.sha256))]:
        raise ValueError(f"the SHA-256 of {short(odd[0])} is {short(metadata.files[odd[0]].sha256)}")
    if metadata.format_version != (CHANGED_VERSION if metadata.changed else FORMAT_VERSION):
        raise ValueError(f"format_version is {metadata.format_version}")
    for segment in metadata.all_segments:
        _check_types(segment)
        if not _FOLDER.fullmatch(segment.folder) or segment.sentences < 1 or segment.lines < 0:
            raise ValueError(f"a segment is {short(segment)}")
        for each in segment.fields:
            _check_types(each)
            Kind(each.kind)
    places = {segment.folder for segment in metadata.all_segments}
    if len(places) <= len(metadata.segments) or not 0 <= metadata.deleted <= metadata.rows:
        raise ValueError(f"{len(places)} folders of segments, and {metadata.deleted} rows deleted")
    if not _DELETED.fullmatch(metadata.deleted_file) or bool(metadata.deleted) != bool(metadata.deleted_file):
        raise ValueError(f"deleted_file is {short(metadata.deleted_file)}")
    return metadata


def _check_types(record: IndexMetadata | Segment | FieldRecord) -> None:
    kinds = get_type_hints(type(record))
    for each in fields(record):
        value, kind = getattr(record, each.name), kinds[each.name]
        if type(value) is not (get_origin(kind) or kind) and not (kind is float and type(value) is int):
            raise ValueError(f"{each.name} is {short(value)}")


def _check_sizes(folder: Path, metadata: IndexMetadata) -> None:
    for name in file_names(metadata):
        if not (folder / name).is_file():
            raise MiningError(f"{folder}: {name} is missing; {_AGAIN}")
        size, written = (folder / name).stat().st_size, metadata.files.get(name)
        wanted = None if written is None else written.size
        if size != wanted:
            raise MiningError(f"{folder}: {name} has {size} bytes where index.json says {short(wanted)}; {_AGAIN}")
    if unknown := set(metadata.files).difference(file_names(metadata)):
        raise ValueError(f"it names {short(min(unknown))}, which is not a file of such an index")


def _check_vectors(path: Path, metadata: IndexMetadata, rows: int) -> None:
    try:
        map_array(path, metadata.vector_type, (rows, metadata.dimension))
    except DAMAGED as error:
        raise MiningError(f"{path}: damaged, or not what index.json says ({one_line(error)}); {_AGAIN}") from error
