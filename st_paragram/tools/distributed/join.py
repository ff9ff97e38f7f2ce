"""Three steps that join neighbors to pairs: scores, matches of sentences, texts."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic
from st_paragram.tools.bitext_mining.margin import margin_scores
from st_paragram.tools.distributed.mining import PAIR, MiningStep, Side
from st_paragram.tools.neighbors.results import Neighbors

_PAIRS = 1 << 16  # in memory at a time
_Pair = tuple[float, int, int]


class ScorePairs(MiningStep):
    """Find the neighbor of each sentence of a side with the highest margin score.

    Args:
        folder: Folder that all steps of mining share.
        side: `source` or `target`.
        settings: Options of `mine`; `margin` and `threshold` are used.

    Example:
        >>> from st_paragram import MiningSettings, ScorePairs
        >>> pipeline = [ScorePairs("mining", "source", MiningSettings(threshold=0.05))]
    """

    name = "🤝 Scores"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs of the sentences of each file of a task, best first."""
        for file in range(rank, len(self.own.paths), world_size):
            pairs = self._pairs(file)
            if self.settings.threshold is not None:
                pairs = pairs[pairs["score"] >= self.settings.threshold]
            order = np.lexsort((pairs["target"], pairs["source"], -pairs["score"]))
            with atomic(self.own.result("pairs", file, ".npy")) as output:
                np.save(output, pairs[order])

    def _pairs(self, file: int) -> NDArray[Any]:
        """Return the best pair of each sentence of a file."""
        neighbors = _neighbors(self.own, file)
        numbers = neighbors.indices
        other_means = np.zeros(numbers.shape)
        for other_file, places in self.other.places(numbers):
            other_rows = numbers[places] - self.other.begins[other_file]
            other_means[places] = _neighbors(self.other, other_file).means[other_rows]
        cosines = neighbors.similarities.astype(np.float64)
        means = neighbors.means[:, None]
        scores = margin_scores(cosines, means, other_means, self.settings.margin)
        best = scores.argmax(axis=1)
        rows = np.arange(len(best))
        pairs = np.empty(len(best), PAIR)
        pairs["score"] = scores[rows, best]
        pairs[self.side] = rows + self.own.begins[file]
        pairs[self.other_side] = numbers[rows, best]
        return pairs


def _neighbors(side: Side, file: int) -> Neighbors:
    with np.load(side.result("neighbors", file, ".npz")) as arrays:
        return Neighbors(arrays["cosines"], arrays["numbers"])


class MatchPairs(MiningStep):
    """Keep the best pairs, each sentence in at most one pair. One task.

    The files of `ScorePairs` are merged as streams. Memory: one byte per sentence.

    Args:
        folder: Folder that all steps of mining share.

    Example:
        >>> from st_paragram import MatchPairs
        >>> pipeline = [MatchPairs("mining")]
    """

    name = "🤝 Matches"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs, best first."""
        matches = self._matches()
        with atomic(self.folder / "pairs" / "matched") as output:
            while block := list(islice(matches, _PAIRS)):
                output.write(np.array(block, PAIR).tobytes())

    def _matches(self) -> Iterator[_Pair]:
        sources = bytearray(len(Side(self.folder, "source")))
        targets = bytearray(len(Side(self.folder, "target")))
        streams = [_stream(path) for path in sorted((self.folder / "pairs").glob("*/*.npy"))]
        for score, source, target in merge(*streams, key=_best_first):
            if not sources[source] and not targets[target]:
                sources[source] = 1
                targets[target] = 1
                yield score, source, target


def _stream(path: Path) -> Iterator[_Pair]:
    pairs = np.load(path, mmap_mode="r")
    for begin in range(0, len(pairs), _PAIRS):
        yield from pairs[begin : begin + _PAIRS].tolist()


def _best_first(pair: _Pair) -> _Pair:
    score, source, target = pair
    return -score, source, target


class WritePairs(MiningStep):
    """Write rows `score TAB source TAB target` to one file per task.

    The files in order, `mined/00000.tsv`, ..., have the best pairs first.

    Args:
        folder: Folder that all steps of mining share.

    Example:
        >>> from st_paragram import WritePairs
        >>> pipeline = [WritePairs("mining")]
    """

    name = "🤝 Texts"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs of a task."""
        path = self.folder / "pairs" / "matched"
        count = path.stat().st_size // PAIR.itemsize
        begin = count * rank // world_size
        end = count * (rank + 1) // world_size
        pairs = np.fromfile(path, PAIR, end - begin, offset=begin * PAIR.itemsize)
        sources = Side(self.folder, "source").texts(pairs["source"])
        targets = Side(self.folder, "target").texts(pairs["target"])
        rows = zip(pairs["score"].tolist(), sources, targets, strict=True)
        with atomic(self.folder / "mined" / f"{rank:05d}.tsv") as file:
            for score, source, target in rows:
                file.write(f"{score:.6f}\t{source}\t{target}\n".encode())
        self.stat_update("pairs", value=len(pairs))
