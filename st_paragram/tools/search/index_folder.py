"""Make an index folder: sentences, their vectors, an index of faiss where comparing everything takes too long."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.encoding.find import commit_of, find
from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.files import atomic_folder, check_output_folder, output_lock
from st_paragram.errors import MiningError
from st_paragram.tools.embed_files.shards import write_array
from st_paragram.tools.search import indexes
from st_paragram.tools.search.content import Content
from st_paragram.tools.search.effort import find_effort
from st_paragram.tools.search.fields import FIELDS, FieldBuilder, FieldRecord, write_columns
from st_paragram.tools.search.index_metadata import (
    FORMAT_VERSION,
    METADATA_FILE,
    SENTENCES,
    VECTORS,
    IndexMetadata,
    part_name,
    write_metadata,
)
from st_paragram.tools.search.sentences import SentenceCounts, Sentences, write_sentences, write_tagged_sentences
from st_paragram.tools.search.settings import FLAT, SearchSettings
from st_paragram.tools.search.stored_search import rows_at_a_time
from st_paragram.tools.search.tagged_texts import TaggedTexts
from st_paragram.tools.search.vectors import StoredVectors, blocks, even_size, pack

NEIGHBOURS = 10  # that recall_at_k is the share of
_EMBED_ROWS = 1 << 14
#: Queries that an index answers in its life, for choosing one: exact up to a million sentences of 1,024 components.
USUAL_QUERIES = 10_000


def build(
    source: str | TaggedTexts, output: Path, model: str, settings: SearchSettings, overwrite: bool, content: Content
) -> IndexMetadata:
    """Make the folder; see `SearchIndex.build`."""
    check = partial(check_output_folder, output, overwrite, METADATA_FILE, "search index", MiningError)
    check()
    path = find(model)
    encoder = load_encoder(path)
    content.check(encoder, model)
    with output_lock(output, check), atomic_folder(output) as part:
        part.mkdir()
        name, counts, records = _write_sentences(source, part, settings.most_repeats)
        dim = _write_vectors(Sentences(part / SENTENCES), part / VECTORS, encoder, settings, content, name)
        metadata = IndexMetadata(
            format_version=FORMAT_VERSION,
            model=with_commit(model, path),
            fingerprint=fingerprint(path),
            source=name,
            lines=counts.lines,
            sentences=counts.sentences,
            dimension=dim,
            vector_type=settings.vector_type.value,
            factory=FLAT,
            part_rows=1,
            effort=0,
            recall=1.0,
            recall_at_k=1.0,
            neighbours=0,
            content=content.value,
            fields=records,
        )
        metadata = add_index(part, metadata, settings)
        metadata = write_metadata(part, metadata)
    return metadata


def add_index(folder: Path, metadata: IndexMetadata, settings: SearchSettings) -> IndexMetadata:
    """Choose how a written segment is searched, and build what that takes.

    Args:
        folder: Of the segment.
        metadata: Of the index with this segment alone.
        settings: How to search.

    Raises:
        SettingsError: faiss cannot make such an index.
        OSError: It cannot be written.
    """
    count, dim = metadata.sentences, metadata.dimension
    metadata = replace(
        metadata,
        factory=indexes.choose_index(settings.index, USUAL_QUERIES, count, dim),
        part_rows=even_size(count, indexes.rows_in(settings.memory, dim)),
        effort=0,
        recall=1.0,
        recall_at_k=1.0,
        neighbours=min(NEIGHBOURS, count),
    )
    return metadata if metadata.factory == FLAT else _add_parts(folder, metadata, settings)


def _write_sentences(
    source: str | TaggedTexts, folder: Path, most_repeats: int | None
) -> tuple[str, SentenceCounts, list[FieldRecord]]:
    """Write sentences and fields of a text; returns its name, what became of its lines, and the fields."""
    if isinstance(source, str):
        return source, write_sentences(source, folder / SENTENCES, most_repeats=most_repeats), []
    builder = FieldBuilder(source.guess)
    counts, columns = write_tagged_sentences(source.rows, source.name, folder / SENTENCES, builder, most_repeats)
    return source.name, counts, write_columns(folder / FIELDS, columns)


def _write_vectors(
    sentences: Sentences,
    path: Path,
    model: TextEncoder,
    settings: SearchSettings,
    content: Content,
    source: str,
) -> int:
    """Embed all sentences into one `.npy` file, some at a time; returns the number of components."""
    dim = model.get_embedding_dimension()
    assert dim is not None
    count, kind = len(sentences), settings.vector_type
    with (
        write_array(path, kind.value, (count, dim)) as write,
        tqdm(total=count, unit="line", unit_scale=True, disable=None) as bar,
    ):
        for begin, end in blocks(count, _EMBED_ROWS):
            rows = content.embed_texts(model, sentences.texts(range(begin, end)))
            write(pack(rows, kind, f"{source}, sentences from {begin + 1}"))
            bar.update(end - begin)
    return dim


def _add_parts(folder: Path, metadata: IndexMetadata, settings: SearchSettings) -> IndexMetadata:
    """Build the inexact indexes, and find out how hard to look: with sentences drawn at random.

    Raises:
        SettingsError: faiss cannot make such an index.
        OSError: It cannot be written.
    """
    vectors, parts = StoredVectors((folder / VECTORS,)), list[tuple[int, Any]]()
    for number, (begin, end) in enumerate(metadata.parts):
        path = folder / part_name(number)
        index = indexes.build(metadata.factory, vectors, begin, end, settings.seed)
        indexes.write(index, path)
        del index
        parts.append((begin, indexes.read(path)))
    part_rows = rows_at_a_time(settings.memory, metadata.dimension)
    found = find_effort(vectors, vectors, parts, NEIGHBOURS, settings, part_rows, own=True)
    return replace(
        metadata, effort=found.effort, recall=found.recall, recall_at_k=found.recall_at_k, neighbours=found.k
    )


def with_commit(name: str, folder: Path) -> str:
    """A model's name, for records: that of a hub id names the commit that was found in place of its revision."""
    commit = commit_of(folder)
    return name if commit is None or Path(name).is_dir() else f"{name.partition('@')[0]}@{commit}"
