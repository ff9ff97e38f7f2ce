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
from st_paragram.tools.bitext_mining.margin import DEFAULT_MARGIN, Margin, Scores, margin_scores
from st_paragram.tools.distributed.base import STEP
from st_paragram.tools.distributed.folder import PAIR, SIDES, Side, other_side
from st_paragram.tools.neighbors.results import Neighbors

_PAIRS = 1 << 16  # in memory at a time
_Pair = tuple[float, int, int]


class ScorePairs(STEP):
    """Find the neighbor of each sentence with the highest margin score, in both directions.

    Args:
        folder: Folder of the mining steps.
        margin: `distance`, `ratio` or `absolute`.
        threshold: Minimum score of a pair; None: all.
    """

    type = "🤝 - PAIRS"
    name = "🤝 Scores"

    def __init__(
        self,
        folder: str | Path,
        margin: str = DEFAULT_MARGIN.value,
        threshold: float | None = None,
    ) -> None:
        """Check the margin."""
        super().__init__()
        self.folder = Path(folder)
        self.margin = Margin(margin)
        self.threshold = -np.inf if threshold is None else threshold

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs of the sentences of each file of a task, best first."""
        for name in SIDES:
            side = Side(self.folder, name)
            other = Side(self.folder, other_side(name))
            for file in range(rank, len(side.paths), world_size):
                pairs = self._pairs(side, other, file)
                pairs = pairs[pairs["score"] >= self.threshold]
                order = np.lexsort((pairs["target"], pairs["source"], -pairs["score"]))
                with atomic(self.folder / "pairs" / f"{name}-{side.paths[file].stem}.npy") as out:
                    np.save(out, pairs[order])

    def _pairs(self, side: Side, other: Side, file: int) -> NDArray[Any]:
        """Return the best pair of each sentence of a file."""
        neighbors = self._neighbors(side, file)
        other_means: Scores = np.zeros(neighbors.indices.shape)
        for other_file, places in other.places(neighbors.indices):
            rows = neighbors.indices[places] - other.begins[other_file]
            other_means[places] = self._neighbors(other, other_file).means[rows]
        cosines = neighbors.similarities.astype(np.float64)
        scores = margin_scores(cosines, neighbors.means[:, None], other_means, self.margin)
        rows = np.arange(len(scores))
        best = scores.argmax(axis=1)
        pairs = np.empty(len(scores), PAIR)
        pairs["score"] = scores[rows, best]
        pairs[side.name] = rows + side.begins[file]
        pairs[other.name] = neighbors.indices[rows, best]
        return pairs

    def _neighbors(self, side: Side, file: int) -> Neighbors:
        path = self.folder / "neighbors" / side.name / f"{side.paths[file].stem}.npz"
        with np.load(path) as arrays:
            return Neighbors(arrays["cosines"], arrays["numbers"])


class MatchPairs(STEP):
    """Keep the best pairs, each sentence in at most one pair. One task.

    The files of `ScorePairs` are merged as streams. Memory: one byte per sentence.

    Args:
        folder: Folder of the mining steps.
    """

    type = "🤝 - PAIRS"
    name = "🤝 Matches"

    def __init__(self, folder: str | Path) -> None:
        """Use a folder."""
        super().__init__()
        self.folder = Path(folder)

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs, best first."""
        matches = self._matches()
        with atomic(self.folder / "pairs" / "matched") as output:
            while block := list(islice(matches, _PAIRS)):
                output.write(np.array(block, PAIR).tobytes())
                self.stat_update("pairs", value=len(block))

    def _matches(self) -> Iterator[_Pair]:
        is_used = {name: bytearray(len(Side(self.folder, name))) for name in SIDES}
        sources = is_used["source"]
        targets = is_used["target"]
        streams = [_stream(path) for path in sorted((self.folder / "pairs").glob("*.npy"))]
        for pair in merge(*streams, key=_best_first):
            _, source, target = pair
            if not sources[source] and not targets[target]:
                sources[source] = 1
                targets[target] = 1
                yield pair


def _stream(path: Path) -> Iterator[_Pair]:
    pairs = np.load(path, mmap_mode="r")
    for begin in range(0, len(pairs), _PAIRS):
        yield from pairs[begin : begin + _PAIRS].tolist()


def _best_first(pair: _Pair) -> _Pair:
    score, source, target = pair
    return -score, source, target


class WritePairs(STEP):
    """Write rows `score TAB source TAB target` to one file per task.

    The files in order, `00000.tsv`, ..., have the best pairs first.

    Args:
        folder: Folder of the mining steps.
        output: Folder for the files.
    """

    type = "🤝 - PAIRS"
    name = "🤝 Texts"

    def __init__(self, folder: str | Path, output: str | Path) -> None:
        """Use the folders."""
        super().__init__()
        self.folder = Path(folder)
        self.output = Path(output)

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs of a task."""
        path = self.folder / "pairs" / "matched"
        count = path.stat().st_size // PAIR.itemsize
        begin = count * rank // world_size
        end = count * (rank + 1) // world_size
        pairs = np.fromfile(path, PAIR, end - begin, offset=begin * PAIR.itemsize)
        source = Side(self.folder, "source").texts(pairs["source"])
        target = Side(self.folder, "target").texts(pairs["target"])
        with atomic(self.output / f"{rank:05d}.tsv") as file:
            for score, first, second in zip(pairs["score"].tolist(), source, target, strict=True):
                file.write(f"{score:.6f}\t{first}\t{second}\n".encode())
        self.stat_update("pairs", value=len(pairs))
