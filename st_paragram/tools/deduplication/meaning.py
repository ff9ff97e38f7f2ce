"""Near-duplicates by meaning: sentences whose embeddings are neighbors, found as mining finds paraphrases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.files import file_digest
from st_paragram.tools.bitext_mining.pipeline import build
from st_paragram.tools.bitext_mining.sentence_stage import SentenceStage
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.deduplication.lines import Lines, rows_of
from st_paragram.tools.search.neighbours import Neighbours
from st_paragram.tools.search.sentences import Sentences
from st_paragram.tools.search.settings import SearchSettings
from st_paragram.tools.stages.executors import Executor

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Meaning:
    """How embeddings are made and searched.

    Attributes:
        model: Directory of a model.
        search: Settings of the search.
    """

    model: Path
    search: SearchSettings = field(default_factory=SearchSettings)


@dataclass(frozen=True)
class Near:
    """The sentences of one side, and which of them are near each other.

    Attributes:
        sentence_of: Sentence of each row, int32 (n,); -1 for a text without two letters or digits.
        starts: Where the neighbors of each sentence begin in `others`, int64 (sentences + 1,).
        others: Sentences that are near, int32.
        cosines: Their cosines, float32.
    """

    sentence_of: NDArray[np.int32]
    starts: NDArray[np.int64]
    others: NDArray[np.int32]
    cosines: NDArray[np.float32]

    def of(self, sentence: int) -> list[int]:
        """The sentences that are near a sentence."""
        begin, end = self.starts[sentence : sentence + 2].tolist()
        near: list[int] = self.others[begin:end].tolist()
        return near

    def cosine(self, one: int, other: int) -> float | None:
        """The cosine of two sentences; None if they are not near."""
        begin, end = self.starts[one : one + 2].tolist()
        place = begin + int(np.searchsorted(self.others[begin:end], other))
        return float(self.cosines[place]) if place < end and self.others[place] == other else None


def near_by_meaning(
    lines: Lines, side: int, folder: Path, meaning: Meaning, k: int, cosine: float, executor: Executor
) -> Near:
    """Find the near sentences of one side.

    Args:
        lines: The rows.
        side: Number of the side.
        folder: An empty folder to work in.
        meaning: How to embed and search.
        k: Neighbors of each sentence that are looked at.
        cosine: Lowest cosine of near sentences.
        executor: Who does the work.

    Raises:
        MiningError: No row has a sentence; embeddings have no direction.
        MissingExtraError: There are so many sentences that faiss is needed, and it is not installed.
    """
    text = folder / "sentences.txt"
    with text.open("w", encoding="utf-8", newline="\n") as file:
        for _, columns in rows_of(lines, _BLOCK):
            file.writelines(f"{line}\n" for line in columns[side])
    stage = SentenceStage(folder, (str(text),), (file_digest(text),), False, None, (None,))
    executor.run([stage])
    sentences = stage.sentences(0)
    rows, nothing = _sentence_of(lines, side, sentences), np.zeros(0, np.int32)
    if len(sentences) == 1:
        return Near(rows, np.zeros(2, np.int64), nothing, nothing.astype(np.float32))
    wanted = {name: getattr(meaning.search, name) for name in SearchSettings.__dataclass_fields__}
    settings = MiningSettings(**wanted, paraphrase=True, k=min(k, len(sentences) - 1))
    output, model = folder / "pairs.tsv", meaning.model
    pipeline = build(stage, output, model, fingerprint(model), settings, max(1, executor.workers))
    executor.run([pipeline.embed, pipeline.index, pipeline.effort, pipeline.search])
    return Near(rows, *_edges(pipeline.search.neighbours(0), cosine))


def _sentence_of(lines: Lines, side: int, sentences: Sentences) -> NDArray[np.int32]:
    """The sentence of each row, -1 for none: a sentence has single spaces."""
    blocks = (range(begin, min(begin + _BLOCK, len(sentences))) for begin in range(0, len(sentences), _BLOCK))
    known = np.concatenate([_hashes(sentences.texts(block)) for block in blocks])
    order, found = np.argsort(known), []
    for _, columns in rows_of(lines, _BLOCK):
        hashes = _hashes(" ".join(line.split()) for line in columns[side])
        places = order[np.minimum(np.searchsorted(known, hashes, sorter=order), len(known) - 1)]
        found.append(np.where(known[places] == hashes, places, -1).astype(np.int32))
    return np.concatenate(found)


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    digests = b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, np.uint64)


def _edges(neighbours: Neighbours, cosine: float) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """`starts`, `others` and `cosines` of `Near`: of two sentences, it is enough that one finds the other."""
    own, place = np.nonzero(neighbours.similarities >= cosine)
    other, cosines = neighbours.indices[own, place], neighbours.similarities[own, place]
    ones, others = np.concatenate([own, other]), np.concatenate([other, own])
    count = len(neighbours.indices)
    keys, first = np.unique(ones * count + others, return_index=True)
    starts = np.searchsorted(keys, np.arange(count + 1) * count)
    return starts, (keys % count).astype(np.int32), np.tile(cosines, 2)[first]
