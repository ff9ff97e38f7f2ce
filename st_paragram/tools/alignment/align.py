"""Sentence alignment of two documents with the same content in the same order.

An alignment is a sequence of blocks, in the order of both documents. A block is a few neighboring
sentences of each document that translate each other. Sentences in no block are skipped. The
alignment is the path with the highest total gain (see `gains`) within a band around a rough path
(see `path`), so time and memory are linear in the number of sentences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.formatting import counted
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.alignment.gains import BlockGains, Document
from st_paragram.tools.alignment.path import (
    Steps,
    band_around,
    best_path,
    gains_in_band,
    path_columns,
    rough_path,
)
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.neighbors.vectors import blocks

_TEXTS_AT_A_TIME = 1 << 14


@dataclass(frozen=True)
class Block:
    """Sentences that translate each other, or a skipped sentence.

    Attributes:
        source: Neighboring rows of the source, from 0, ignoring blank rows; empty if a target
            sentence is skipped.
        target: Rows of the target.
        score: Cosine of the two sides, each embedded as one text; 0 for a skipped sentence.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float


def align(
    source: Sequence[str],
    target: Sequence[str],
    model: TextEncoder,
    settings: AlignmentSettings | None = None,
) -> list[Block]:
    """Align a document of n sentences with its translation of m sentences.

    A sentence in which the model knows no token is skipped.

    Args:
        source: Sentences of the source.
        target: Sentences of the target.
        model: An `Encoder` or any SentenceTransformer.
        settings: Alignment options.

    Returns:
        The blocks, in order.

    Raises:
        SettingsError: `model` is the name of a model.
        MiningError: The documents have different numbers of sections (`settings.boundary`).

    Examples:
        >>> from st_paragram import Encoder, align
        >>> blocks = align(["A house.", "It is old."], ["Una casa que es vieja."],
        ...     Encoder("p-sp-mini"))
        >>> blocks[0].source, blocks[0].target
        ((0, 1), (0,))
    """
    settings = settings or AlignmentSettings()
    if isinstance(model, str):
        raise SettingsError(f"model is {model!r}; give Encoder({model!r}) or a SentenceTransformer")
    source = list_of_texts(source)
    target = list_of_texts(target)
    result: list[Block] = []
    for source_rows, target_rows in paired_sections(source, target, settings.boundary):
        first = _embedded(source, source_rows, model)
        second = _embedded(target, target_rows, model)
        aligned: list[Block] = []
        if first.rows and second.rows:
            steps = _path(first, second, settings)
            aligned = _scored(steps, first, second, model=model)
        if settings.with_skipped:
            aligned = _with_skipped(aligned, source_rows, target_rows)
        result += aligned
    return result


def paired_sections(
    source: Sequence[str], target: Sequence[str], boundary: str | None
) -> list[tuple[list[int], list[int]]]:
    """Return the rows of each section of source and target, without blank rows."""
    sources = _sections(source, boundary)
    targets = _sections(target, boundary)
    if len(sources) != len(targets):
        raise MiningError(
            f"the source has {counted(len(sources), 'section')}, the target"
            f" {counted(len(targets), 'section')}; write as many lines {boundary!r} in both"
        )
    return list(zip(sources, targets, strict=True))


def _sections(document: Sequence[str], boundary: str | None) -> list[list[int]]:
    sections: list[list[int]] = [[]]
    for row, sentence in enumerate(document):
        if boundary is not None and sentence.strip() == boundary:
            sections.append([])
        elif sentence.strip():
            sections[-1].append(row)
    return sections


def _embedded(document: Sequence[str], rows: Sequence[int], model: TextEncoder) -> Document:
    """Embed the sentences in which the model knows a token."""
    embeddings = unit_embeddings(model, [document[row] for row in rows])
    known_rows = list(compress(rows, embeddings.known))
    sentences = [document[row] for row in known_rows]
    lengths = [len(sentence) for sentence in sentences]
    vectors = embeddings.vectors[embeddings.known]
    vectors *= np.sqrt(lengths, dtype=np.float32)[:, None]
    return Document(known_rows, sentences, vectors, np.cumsum([0, *lengths]))


def _path(source: Document, target: Document, settings: AlignmentSettings) -> Steps:
    n = len(source.rows)
    m = len(target.rows)
    rough = rough_path(source.vectors, target.vectors)
    gains = BlockGains(source, target, rough, settings=settings)
    band = band_around(path_columns(rough, n, m), m)
    return best_path(gains_in_band(gains, band), gains.kinds, band, columns=m)


def _scored(steps: Steps, source: Document, target: Document, model: TextEncoder) -> list[Block]:
    """Return the blocks of a path with the cosines of their joined sentences."""
    aligned: list[Block] = []
    for begin, end in blocks(len(steps), _TEXTS_AT_A_TIME):
        part = steps[begin:end].tolist()
        sources = [" ".join(source.sentences[i : i + height]) for i, _, height, _ in part]
        targets = [" ".join(target.sentences[j : j + width]) for _, j, _, width in part]
        first = unit_embeddings(model, sources).vectors
        second = unit_embeddings(model, targets).vectors
        scores = np.einsum("nd,nd->n", first, second, dtype=np.float64)
        for (i, j, height, width), score in zip(part, scores.tolist(), strict=True):
            source_rows = tuple(source.rows[i : i + height])
            target_rows = tuple(target.rows[j : j + width])
            aligned.append(Block(source_rows, target_rows, score))
    return aligned


def _with_skipped(
    aligned: Sequence[Block], source: Sequence[int], target: Sequence[int]
) -> list[Block]:
    """Add the other rows as skipped blocks, source rows first.

    A skipped row is before the first block that has a later row.
    """
    sources = [block.source for block in aligned]
    targets = [block.target for block in aligned]
    skipped_source = sorted(set(source).difference(*sources))
    skipped_target = sorted(set(target).difference(*targets))
    skipped = [Block((row,), (), 0.0) for row in skipped_source]
    skipped += [Block((), (row,), 0.0) for row in skipped_target]

    def blocks_before(block: Block) -> int:
        if block.source:
            return bisect_left(sources, block.source)
        return bisect_left(targets, block.target)

    return sorted([*skipped, *aligned], key=blocks_before)
