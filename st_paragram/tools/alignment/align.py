"""Sentence alignment of two documents with the same content in the same order.

An alignment is a sequence of blocks, in the order of both documents. A block is a few neighboring
sentences of each document that translate each other. Sentences in no block are skipped. The
alignment is the path with the highest total gain (see `gains`) within a band around a rough path
(see `path`), so time and memory are linear in the number of sentences.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress

import numpy as np

from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.formatting import counted
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.alignment.gains import BlockGains, Document, Embed
from st_paragram.tools.alignment.path import (
    band_around,
    best_path,
    gains_in_band,
    path_columns,
    rough_path,
)
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.neighbors.results import Vectors
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

    Example:
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

    def embed(texts: Sequence[str]) -> Vectors:
        return unit_embeddings(model, texts).vectors

    result: list[Block] = []
    for source_rows, target_rows in paired_sections(source, target, settings.boundary):
        aligned: list[Block] = []
        if source_rows and target_rows:
            first = _embedded(source, source_rows, embed)
            second = _embedded(target, target_rows, embed)
            aligned = _align(first, second, embed, settings=settings)
        if settings.with_skipped:
            aligned = list(_with_skipped(aligned, source_rows, target_rows))
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


def _embedded(document: Sequence[str], rows: Sequence[int], embed: Embed) -> Document:
    """Embed the sentences in which the model knows a token."""
    known_rows: list[int] = []
    vectors: list[Vectors] = []
    for begin, end in blocks(len(rows), _TEXTS_AT_A_TIME):
        part = list(rows[begin:end])
        embeddings = embed([document[row] for row in part])
        is_known = np.any(embeddings, axis=1)
        known_rows += compress(part, is_known)
        vectors.append(embeddings[is_known])
    sentences = [document[row] for row in known_rows]
    lengths = [len(sentence) for sentence in sentences]
    ends = np.cumsum([0, *lengths]).astype(np.float64)
    return Document(known_rows, sentences, np.concatenate(vectors), ends)


def _align(
    source: Document, target: Document, embed: Embed, settings: AlignmentSettings
) -> list[Block]:
    n = len(source.rows)
    m = len(target.rows)
    if not n or not m:
        return []
    rough = rough_path(source.vectors, target.vectors)
    gains = BlockGains(source, target, rough, embed=embed, settings=settings)
    band = band_around(path_columns(rough, n, m), m)
    steps = best_path(gains_in_band(gains, band), gains.kinds, band, columns=m)
    aligned: list[Block] = []
    for begin, end in blocks(len(steps), _TEXTS_AT_A_TIME):
        part = steps[begin:end]
        sources = embed([source.text(step.source, step.height) for step in part])
        targets = embed([target.text(step.target, step.width) for step in part])
        scores = np.einsum("nd,nd->n", sources, targets, dtype=np.float64)
        for step, score in zip(part, scores.tolist(), strict=True):
            source_rows = source.rows[step.source : step.source + step.height]
            target_rows = target.rows[step.target : step.target + step.width]
            aligned.append(Block(tuple(source_rows), tuple(target_rows), score))
    return aligned


def _with_skipped(
    aligned: Sequence[Block], source: Sequence[int], target: Sequence[int]
) -> Iterator[Block]:
    """Yield the blocks and the other rows as skipped blocks, source rows first.

    A skipped row is before the first block that has a later row.
    """
    aligned_source = set(chain.from_iterable(block.source for block in aligned))
    aligned_target = set(chain.from_iterable(block.target for block in aligned))
    skipped_source = deque(row for row in source if row not in aligned_source)
    skipped_target = deque(row for row in target if row not in aligned_target)
    for block in aligned:
        while skipped_source and skipped_source[0] < block.source[0]:
            yield Block((skipped_source.popleft(),), (), 0.0)
        while skipped_target and skipped_target[0] < block.target[0]:
            yield Block((), (skipped_target.popleft(),), 0.0)
        yield block
    for row in skipped_source:
        yield Block((row,), (), 0.0)
    for row in skipped_target:
        yield Block((), (row,), 0.0)
