"""Make an index folder: sentences, their vectors, an index of faiss where comparing everything takes too long."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from tqdm import tqdm

from st_paragram.bitext_mining.settings import FLAT, MiningSettings
from st_paragram.errors import MiningError
from st_paragram.files import atomic, locked
from st_paragram.models import directory as model_directory
from st_paragram.models.find import find
from st_paragram.search import indexes
from st_paragram.search.index_metadata import (
    FORMAT_VERSION,
    METADATA_FILE,
    SENTENCES,
    VECTORS,
    IndexMetadata,
    part_name,
    write_metadata,
)
from st_paragram.search.neighbours import Neighbours, Vectors
from st_paragram.search.sentences import Sentences, write_sentences
from st_paragram.search.stored_search import approximate, exact
from st_paragram.search.vectors import Precision, StoredVectors, blocks, even_size, pack

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NEIGHBOURS = 10  # that recall is the share of
_EMBED_ROWS = 1 << 14
_SAMPLE = 1000  # sentences that recall is measured with
_USUAL_QUERIES = 10_000  # that an index answers in its life, for choosing one: exact up to 1M sentences of 1024


def build(source: str, output: Path, model: str, settings: MiningSettings, overwrite: bool) -> IndexMetadata:
    """Make the folder; see `SearchIndex.build`."""
    check_output(output, overwrite)
    path = find(model)
    fingerprint = model_directory.fingerprint(path)
    with _unfinished(output) as part:
        counts = write_sentences(source, part / SENTENCES, most_repeats=settings.most_repeats)
        dim = _write_vectors(Sentences(part / SENTENCES), part / VECTORS, model_directory.load(path), settings, source)
        metadata = IndexMetadata(
            format_version=FORMAT_VERSION,
            model=model,
            fingerprint=fingerprint,
            source=source,
            lines=counts.lines,
            sentences=counts.sentences,
            dimension=dim,
            precision=settings.precision.value,
            factory=indexes.choose_index(settings.index, _USUAL_QUERIES, counts.sentences, dim),
            part_rows=even_size(counts.sentences, indexes.rows_in(settings.memory, dim)),
            effort=0,
            recall=1.0,
            neighbours=min(NEIGHBOURS, counts.sentences),
        )
        if metadata.factory != FLAT:
            metadata = _add_parts(part, metadata, settings)
        write_metadata(part, metadata)
    return metadata


def check_output(output: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be made before any work is done for it.

    Raises:
        MiningError: It exists and must not be overwritten, or is something else than an index; or cannot be made.
    """
    if output.exists():
        if not (output / METADATA_FILE).is_file():
            raise MiningError(f"{output}: exists and is no index; choose another name")
        if not overwrite:
            raise MiningError(f"{output}: exists; choose another name or give --overwrite")
    blocker = next((folder for folder in output.absolute().parents if folder.exists()), None)
    if not output.name or blocker is None or not blocker.is_dir() or not os.access(blocker, os.W_OK):
        raise MiningError(f"{output}: no folder can be made there; choose another place")


def find_effort(
    search: Callable[[int], Neighbours], true: Neighbours, wanted: float, own: bool = False
) -> tuple[int, float]:
    """The least effort with enough recall, or the most there is, and the share of the nearest rows it finds.

    Args:
        search: For some queries with an effort.
        true: What an exact search finds for them.
        wanted: Recall.
        own: Queries are rows of the index: the nearest is each itself, which says nothing.
    """
    skip = int(own and true.similarities.shape[1] > 1)
    for effort in indexes.EFFORTS:
        found = search(effort).similarities[:, skip:]
        recall = float((found >= true.similarities[:, -1:]).mean())
        if recall >= wanted:
            break
    return effort, recall


@contextmanager
def _unfinished(output: Path) -> Iterator[Path]:
    """An empty folder that takes its name when all went well, and goes otherwise."""
    part = output.with_name(f"{output.name}.part")
    with locked(part):
        try:
            for path in part.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.suffix != ".lock":
                    path.unlink()
            yield part
            for path in part.glob("*.lock"):
                path.unlink()
            _rename(part, output)
        except OSError as error:
            raise MiningError(f"{output}: cannot be made ({error}); free space, or choose another place") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _rename(part: Path, output: Path) -> None:
    old = output.with_name(f"{output.name}.old.part")
    if output.exists():
        shutil.rmtree(old, ignore_errors=True)
        output.rename(old)
    part.rename(output)
    shutil.rmtree(old, ignore_errors=True)


def _write_vectors(
    sentences: Sentences, path: Path, model: SentenceTransformer, settings: MiningSettings, source: str
) -> int:
    """Embed all sentences into one `.npy` file, some at a time; returns the number of components."""
    dim = model.get_embedding_dimension()
    assert dim is not None
    descr = npy.dtype_to_descr(np.dtype(Precision(settings.precision).value))
    with atomic(path) as handle, tqdm(total=len(sentences), unit="line", unit_scale=True, disable=None) as bar:
        npy.write_array_header_1_0(handle, {"descr": descr, "fortran_order": False, "shape": (len(sentences), dim)})
        for begin, end in blocks(len(sentences), _EMBED_ROWS):
            rows: Vectors = model.encode(sentences.texts(range(begin, end)), show_progress_bar=False)
            where = f"{source}, sentences from {begin + 1}"
            handle.write(pack(np.asarray(rows, dtype=np.float32), settings.precision, where).tobytes())
            bar.update(end - begin)
    return dim


def _add_parts(folder: Path, metadata: IndexMetadata, settings: MiningSettings) -> IndexMetadata:
    """Build the inexact indexes, and find out how hard to look on sentences drawn at random, each left out of its own.

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
    rng, k = np.random.default_rng(settings.seed), min(NEIGHBOURS + 1, len(vectors))
    sample = vectors.take(np.sort(rng.permutation(len(vectors))[:_SAMPLE]))
    true = exact(sample, vectors, k, max(1024, settings.memory // 2 // (4 * metadata.dimension)))
    effort, recall = find_effort(
        lambda effort: approximate(sample, vectors, parts, k, effort), true, settings.recall, own=True
    )
    return replace(metadata, effort=effort, recall=recall)
