"""What plans say of searches, and of work within pairs of documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from st_paragram.core.plan import Needs, Plan, size
from st_paragram.core.words import counted
from st_paragram.tools.alignment.document_list import DocumentPair
from st_paragram.tools.alignment.document_stage import DocumentStage, Settings
from st_paragram.tools.alignment.documents import check_documents
from st_paragram.tools.options.plans import PlannedModel, PlannedText, planned_lines, planned_work, planned_workers
from st_paragram.tools.search.indexes import choose_index, import_faiss, new_index
from st_paragram.tools.search.sentences import write_sentences
from st_paragram.tools.search.settings import AUTO, FLAT, SearchSettings, Size
from st_paragram.tools.stages.stage import check_stage
from st_paragram.tools.stages.work import Work

# Measured on two cores (docs/mining.md): 100,000 sentences of 300 components per side in 50 s, both ways by one
# product, and a million per side through an index in 177 s, with building it.
_PRODUCTS_A_SECOND = 6e10
_SECONDS_A_ROW_OF_AN_INDEX = 90e-6
_LIBRARIES = 500 << 20  # on top of what --memory limits, as its help says
_SMALL = 1 << 20  # bytes of a text that takes a tenth of a second to read
_BYTES_OF_A_SENTENCE = 60  # that is kept with its vector


def planned_sentences(
    path: str, settings: SearchSettings, with_ids: bool = False, column: str | None = None
) -> PlannedText:
    """A text of which the distinct sentences are searched; a small one is read, so that their number is known.

    Raises:
        TextError, MiningError: As `sentences.write_sentences` for a small text; else its beginning cannot be read.
    """
    text = planned_lines(path, column)
    if text.bytes is None or text.bytes > _SMALL:
        return text
    with TemporaryDirectory() as folder:
        counts = write_sentences(path, Path(folder), with_ids, settings.most_repeats, column)
    line = f"{path}: {size(text.bytes)}, {counted(counts.sentences, 'sentence')} in {counted(counts.lines, 'line')}"
    return PlannedText(line, text.bytes, counts.sentences, counted=True)


def search_in_words(settings: SearchSettings, queries: int | None, rows: int | None, model: PlannedModel) -> str:
    """Which index, and why.

    Raises:
        MissingExtraError: An index of faiss was named, and faiss is not installed.
        SettingsError: faiss does not know it.
    """
    stored = f"vectors in {settings.vector_type.value}, {Size(settings.memory)} of memory at most"
    if settings.index not in (AUTO, FLAT):
        new_index(settings.index, model.dimension) if model.dimension else import_faiss()
    if settings.index != AUTO:
        return f"index {settings.index}, {stored}"
    if queries is None or rows is None or model.dimension is None:
        return f"an index chosen by the number of sentences, {stored}"
    factory = choose_index(AUTO, queries, rows, model.dimension)
    how = "everything is compared" if factory == FLAT else f"recall {settings.recall:g}, needs faiss"
    return f"index {factory} ({how}) if no sentences are repeated, {stored}"


def search_needs(
    settings: SearchSettings, queries: int | None, rows: int | None, model: PlannedModel, texts: int, workers: int = 1
) -> Needs:
    """What embedding and searching take.

    Args:
        settings: Of the search.
        queries: Sentences of the first text; 0 if nothing is searched for yet.
        rows: Sentences of the second text, or again of the first.
        model: That embeds.
        texts: 1 or 2, for paraphrases 1.
        workers: Processes.
    """
    if queries is None or rows is None or model.dimension is None:
        return Needs()
    dim, embedded = model.dimension, rows + (queries if texts > 1 else 0)
    number = np.dtype(settings.vector_type.value).itemsize
    exact = choose_index(settings.index, queries, rows, dim) == FLAT
    search = queries * rows * dim / _PRODUCTS_A_SECOND * (1 if texts > 1 else 0.5)
    if not exact:
        search = embedded * _SECONDS_A_ROW_OF_AN_INDEX
    seconds = model.seconds(embedded, workers)
    held = min(int(settings.memory), 4 * dim * embedded)
    disk = embedded * (number * dim + _BYTES_OF_A_SENTENCE + (0 if exact else dim // 8 + 8))
    return Needs(None if seconds is None else seconds + search, _LIBRARIES + held, disk)


def documents_plan(
    verb: str,
    documents: str | Iterable[DocumentPair],
    output: Path,
    model: PlannedModel,
    settings: Settings,
    overwrite: bool,
    work: Work,
) -> Plan:
    """Mining or aligning within pairs of documents.

    All documents are looked through, as the run itself does before the first is worked on.

    Raises:
        ParagramError: As `documents.mine_documents`.
    """
    pairs, source, target = check_documents(documents, output, settings, overwrite)
    if work.force:
        check_stage([DocumentStage.name], work.force)
    seen = f"{counted(len(pairs), 'pair')} of documents with {source:,} and {target:,} sentences"
    return Plan(
        f"{verb} within pairs of documents",
        [f"{documents}: {seen}" if isinstance(documents, str) else seen, model.line],
        [f"{output}: rows `score TAB source TAB target`", planned_work(work, output)],
        [f"margin {settings.margin.value}, {settings.k} neighbors", planned_workers(work.executor)],
        Needs(None, model.memory(work.workers), None, "the size of the documents"),
    )
