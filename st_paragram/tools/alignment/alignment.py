"""Sentence alignment of two documents that say the same in the same order.

An alignment is a sequence of blocks, in the order of both documents. A block is one sentence of each (1-1), or one
sentence of one and two neighbors of the other (1-2, 2-1). Sentences in no block are skipped (1-0, 0-1).

The score s(B) of a block is the margin score (Artetxe and Schwenk, ACL 2019, arXiv 1811.01136; see `margin`) of its
two sides, each embedded as one text with its sentences joined by a space. To embed joined sentences, rather than add
up scores of single ones, is the idea of Vecalign (Thompson and Koehn, EMNLP 2019); the search here is exact, theirs
is not. The background of a side, of one sentence or two, is its mean cosine with the k nearest *single* sentences of
the other document: joined texts overlap, and near copies of one text would make the background too high.

The alignment is one that maximizes

    sum over blocks B of (s(B) - skip)

so a block is taken where it scores `skip` or more, and a 1-2 block is taken in place of a 1-1 block and a
skipped sentence if the joined sentences fit better than the one alone. (To count a block by its sentences, as costs
per sentence would, pays for every stray sentence that a block can take up.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from st_paragram.errors import MiningError
from st_paragram.tools.alignment.path import KINDS, best_path
from st_paragram.tools.alignment.scores import BlockScores, Embed
from st_paragram.tools.alignment.settings import AlignmentSettings

#: Sentences of one document times those of the other: a byte of memory each.
MOST_CELLS = 400_000_000


@dataclass(frozen=True)
class Block:
    """Sentences that translate each other.

    Attributes:
        source: Their rows in the source document, from 0: one, or two that are neighbors but for blank rows; none if
            the block is a skipped sentence of the target document.
        target: The same of the target document.
        score: Their margin score.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float


def align(
    source: Sequence[str], target: Sequence[str], embed: Embed, settings: AlignmentSettings | None = None
) -> list[Block]:
    """Align two documents of n and m sentences.

    Time: 3 n m cosines, and as much again for backgrounds. Memory: n m bytes, and the vectors. Cosines are computed
    in float64 and rounded to float32, so that the result does not hang on the number of threads; `best_path` says
    which of equally good alignments it is.

    Args:
        source: Sentences; blank ones are in no block.
        target: Sentences.
        embed: Gives float32 (c, D) for c texts.
        settings: How to score.

    Returns:
        The blocks in order.

    Raises:
        MiningError: The documents are too large, or an embedding has no direction.
    """
    settings = settings or AlignmentSettings()
    source_rows, target_rows = _said(source), _said(target)
    n, m = len(source_rows), len(target_rows)
    check_size(n, m)
    found = []
    if n and m:
        sources, targets = [source[row] for row in source_rows], [target[row] for row in target_rows]
        scores = BlockScores(sources, targets, embed, settings.margin, settings.k)
        for step in best_path(scores.gains(settings.least), n, m):
            ahead, across = KINDS[step.kind]
            rows = tuple(source_rows[step.source : step.source + ahead])
            others = tuple(target_rows[step.target : step.target + across])
            found.append(Block(rows, others, scores.of(step)))
    return list(_with_skipped(found, source_rows, target_rows)) if settings.with_skipped else found


def check_size(source: int, target: int) -> None:
    """Refuse documents that would take too much memory.

    Args:
        source: Sentences of the one that are not blank.
        target: Of the other.

    Raises:
        MiningError: They are too large.
    """
    if source * target > MOST_CELLS:
        seen = f"{source:,} and {target:,} sentences are too many to align (their product is above {MOST_CELLS:,})"
        raise MiningError(f"{seen}; cut the documents at chapters, or mine them without regard to order")


def _with_skipped(found: Iterable[Block], source: Sequence[int], target: Sequence[int]) -> Iterator[Block]:
    """Blocks with the rows between them, those of the source first."""
    i = j = 0
    for block in [*found, None]:
        while i < len(source) and (block is None or source[i] != block.source[0]):
            yield Block((source[i],), (), 0.0)
            i += 1
        while j < len(target) and (block is None or target[j] != block.target[0]):
            yield Block((), (target[j],), 0.0)
            j += 1
        if block is not None:
            yield block
            i, j = i + len(block.source), j + len(block.target)


def _said(document: Sequence[str]) -> list[int]:
    return [row for row, sentence in enumerate(document) if sentence.strip()]
