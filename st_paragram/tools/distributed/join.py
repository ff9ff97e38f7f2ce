"""Three steps that join neighbors to pairs: scores, matches of sentences, texts."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.utils.batching import batched

from st_paragram.core.files import atomic
from st_paragram.tools.bitext_mining.candidates import ScoredPairs, best_by_means, best_first
from st_paragram.tools.distributed.mining import MiningStep, write_table
from st_paragram.tools.neighbors.results import Neighbors

_PAIRS = 1 << 20  # in a file of matches
_STREAMED = 1 << 10  # pairs of a file in memory at a time
_Pair = dict[str, Any]


class ScorePairs(MiningStep):
    """Find the neighbor of each sentence of a side with the highest margin score.

    Args:
        folder: Folder that all steps of mining share.
        side: `source` or `target`.
        settings: Options of `mine`; `margin` and `threshold` are used.

    Examples:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import ScorePairs
        >>> pipeline = [ScorePairs("mining", "source", MiningSettings(threshold=0.05))]
    """

    name = "🤝 Scores"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs of the sentences of each file of a task, best first."""
        for file in self.own.files()[rank::world_size]:
            table = pq.read_table(self.own.path("neighbors", file))
            begin, end = self.own.begins[file : file + 2]
            shape = (end - begin, -1)
            cosines = table["cosine"].to_numpy().reshape(shape)
            numbers = table["number"].to_numpy().reshape(shape)
            means = self.other.take("means", "mean", table["number"]).to_numpy().reshape(shape)
            neighbors = Neighbors(cosines, numbers)
            others, scores = best_by_means(neighbors, means, self.settings.margin)
            own = np.arange(begin, end)
            pairs = ScoredPairs(own, others, scores)
            if self.own.name == "target":
                pairs = ScoredPairs(others, own, scores)
            if self.settings.threshold is not None:
                pairs = pairs.at(scores >= self.settings.threshold)
            write_table(vars(best_first(pairs)), self.own.path("pairs", file))


class MatchPairs(MiningStep):
    """Keep the best pairs, each sentence in at most one pair. One task.

    The files of `ScorePairs` are merged as streams. Memory: one byte per sentence.

    Args:
        folder: Folder that all steps of mining share.

    Examples:
        >>> from st_paragram.distributed import MatchPairs
        >>> pipeline = [MatchPairs("mining")]
    """

    name = "🤝 Matches"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs, best first."""
        for number, pairs in enumerate(batched(self._matches(), _PAIRS)):
            path = self.folder / "matches" / f"{number:05d}.parquet"
            write_table(pa.Table.from_pylist(pairs), path)
            self.stat_update("pairs", value=len(pairs))

    def _matches(self) -> Iterator[_Pair]:
        sources = bytearray(len(self.own))
        targets = bytearray(len(self.other))
        paths = self.own.paths("pairs") + self.other.paths("pairs")
        streams = [_stream(path) for path in paths]
        for pair in merge(*streams, key=_best_first):
            source = pair["source"]
            target = pair["target"]
            if not sources[source] and not targets[target]:
                sources[source] = 1
                targets[target] = 1
                yield pair


def _stream(path: Path) -> Iterator[_Pair]:
    file = pq.ParquetFile(path, memory_map=True)
    for batch in file.iter_batches(_STREAMED):
        yield from batch.to_pylist()


def _best_first(pair: _Pair) -> tuple[float, int, int]:
    return -pair["scores"], pair["source"], pair["target"]


class WritePairs(MiningStep):
    """Write rows `score TAB source TAB target` to one file per million pairs.

    The files in order, `mined/00000.tsv`, ..., have the best pairs first.

    Args:
        folder: Folder that all steps of mining share.

    Examples:
        >>> from st_paragram.distributed import WritePairs
        >>> pipeline = [WritePairs("mining")]
    """

    name = "🤝 Texts"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the files of a task."""
        paths = sorted((self.folder / "matches").glob("[0-9]*"))
        for path in paths[rank::world_size]:
            pairs = pq.read_table(path)
            source = self.own.take("vectors", "text", pairs["source"])
            target = self.other.take("vectors", "text", pairs["target"])
            table = pa.table({"score": pairs["scores"], "source": source, "target": target})
            with atomic(self.folder / "mined" / f"{path.stem}.tsv") as file:
                for pair in table.to_pylist():
                    row = f"{pair['score']:.6f}\t{pair['source']}\t{pair['target']}\n"
                    file.write(row.encode())
