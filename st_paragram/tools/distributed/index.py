"""Two steps that index vectors: train an index on a sample, and add the vectors."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from st_paragram.core.files import atomic
from st_paragram.core.folders import temporary_folder
from st_paragram.tools.distributed.base import LOGGER
from st_paragram.tools.distributed.mining import FAISS, MiningStep, trained_index
from st_paragram.tools.neighbors.inexact import Index, choose_index
from st_paragram.tools.neighbors.settings import Size
from st_paragram.tools.neighbors.vectors import blocks

_ROWS = 120  # per square root of all rows: at least 40 for each list of `choose_index`
_ADDED = 1 << 16  # rows added at a time


class TrainIndex(MiningStep):
    """Train an index of a side on its first files. One task.

    The kind of index is that of `mine`.

    Args:
        folder: Folder that all steps of mining share.
        side: Side to index, `source` or `target`.
        settings: Options of `mine`; `index` and `seed` are used.

    Example:
        >>> from st_paragram import MiningSettings, TrainIndex
        >>> pipeline = [TrainIndex("mining", "source", MiningSettings(index="auto"))]
    """

    name = "🔎 Training"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write an index without vectors."""
        count = len(self.own)
        sample = self.own.first_vectors(_ROWS * math.isqrt(count))
        factory = choose_index(self.settings.index, len(self.other), count, dim=sample.dim)
        settings = replace(self.settings, memory=Size(1 << 40))  # the sample is not divided
        path = trained_index(self.folder, self.side)
        with temporary_folder(path) as folder:
            index = Index(factory or "Flat", sample, folder, settings)
            # read again, since an index in a memory map cannot be emptied
            (sample_path,) = folder.glob("*.faiss")
            trained = FAISS.read_index(str(sample_path))
        trained.reset()
        write_index(trained, path)
        LOGGER.info(f"{self.side}: index {index.factory}")


class AddVectors(MiningStep):
    """Add the vectors of consecutive files of a side to a copy of its trained index.

    Each task makes one file of the index. With few large files, a search takes less time and more
    memory.

    Args:
        folder: Folder that all steps of mining share.
        side: Side to index, `source` or `target`.

    Example:
        >>> from st_paragram import AddVectors
        >>> pipeline = [AddVectors("mining", "source")]
    """

    name = "🔎 Addition"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the file of a task."""
        index = FAISS.read_index(str(trained_index(self.folder, self.side)))
        count = len(self.own.paths)
        for file in range(count * rank // world_size, count * (rank + 1) // world_size):
            vectors = self.own.vectors(file)
            for begin, end in blocks(len(vectors), _ADDED):
                index.add(vectors.rows(begin, end))
        write_index(index, self.folder / "index" / self.side / f"{rank:05d}.faiss")
        self.stat_update("vectors", value=index.ntotal)


def write_index(index: Any, path: Path) -> None:
    """Write an index, whole or not at all."""
    with atomic(path) as file:
        FAISS.write_index(index, FAISS.PyCallbackIOWriter(file.write))
