"""Two steps that index vectors: train an index on a sample, and add the vectors of each file."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from st_paragram.core.extras import require
from st_paragram.core.files import atomic
from st_paragram.tools.distributed.base import PURPOSE, STEP
from st_paragram.tools.distributed.folder import Side, other_side
from st_paragram.tools.neighbors.inexact import Index, choose_index, find_effort
from st_paragram.tools.neighbors.settings import AUTO, SearchSettings
from st_paragram.tools.neighbors.vectors import blocks

logger = logging.getLogger(__name__)

_ROWS = 120  # per square root of all rows: at least 40 for each list of `choose_index`
_QUERIES = 1000
_ADDED = 1 << 16  # rows added at a time


class TrainIndex(STEP):
    """Train an index of a side on its first files, with the kind of index of `mine`. One task.

    The number of lists visited per query is the first with enough recall: queries of the other side
    search the sample, and their nearest neighbors are compared with those of an exact search.

    Args:
        folder: Folder of the mining steps.
        side: Side to index, `source` or `target`.
        index: `auto`, or a faiss factory string such as IVF65536,SQfp16 or Flat. Files of an index
            share its centroids and codes.
        recall: Share of sampled queries whose nearest neighbor must be found.
        neighbors: Number of neighbors that will be searched.
        seed: Seed of the samples.
    """

    type = "🔎 - INDEX"
    name = "🔎 Training"

    def __init__(
        self,
        folder: str | Path,
        side: str,
        *,
        index: str = AUTO,
        recall: float = 0.9,
        neighbors: int = 4,
        seed: int = 0,
    ) -> None:
        """Check the settings."""
        super().__init__()
        self.folder = Path(folder)
        self.side = side
        self.queries = other_side(side)
        self.neighbors = neighbors
        # the sample is one part of an index, however large
        self.settings = SearchSettings(index=index, recall=recall, memory="1T", seed=seed)  # type: ignore[arg-type]

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Train and write an index without vectors, which knows its search effort."""
        faiss = require("faiss", "mining", PURPOSE)
        side = Side(self.folder, self.side)
        queries = Side(self.folder, self.queries)
        sample = side.first_vectors(_ROWS * math.isqrt(len(side)))
        factory = choose_index(self.settings.index, len(queries), len(side), dim=sample.dim)
        with TemporaryDirectory() as folder:
            index = Index(factory or "Flat", sample, Path(folder), self.settings)
            (path,) = Path(folder).glob("*.faiss")
            trained = faiss.read_index(str(path))
        index.parts = [(0, trained)]  # not memory-mapped, so that it can be emptied
        effort = find_effort(
            queries.first_vectors(_QUERIES), index, self.neighbors, settings=self.settings
        )
        logger.info("%s, %s: %s", self.side, index.factory, effort)
        self.stat_update("effort", value=effort.effort)
        trained.reset()
        write_index(trained, self.folder / "index" / self.side / "trained.faiss")


class AddVectors(STEP):
    """Add the vectors of each file of a side to a copy of its trained index.

    Args:
        folder: Folder of the mining steps.
        side: Side to index, `source` or `target`.
    """

    type = "🔎 - INDEX"
    name = "🔎 Addition"

    def __init__(self, folder: str | Path, side: str) -> None:
        """Check the side."""
        super().__init__()
        other_side(side)
        self.folder = Path(folder)
        self.side = side

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the indexes of the files of a task."""
        faiss = require("faiss", "mining", PURPOSE)
        folder = self.folder / "index" / self.side
        side = Side(self.folder, self.side)
        for file in range(rank, len(side.paths), world_size):
            index = faiss.read_index(str(folder / "trained.faiss"))
            vectors = side.vectors(file)
            for begin, end in blocks(len(vectors), _ADDED):
                index.add(vectors.rows(begin, end))
            write_index(index, folder / f"{side.paths[file].stem}.faiss")
            self.stat_update("vectors", value=index.ntotal)


def write_index(index: Any, path: Path) -> None:
    """Write an index, whole or not at all."""
    faiss = require("faiss", "mining", PURPOSE)
    with atomic(path) as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
