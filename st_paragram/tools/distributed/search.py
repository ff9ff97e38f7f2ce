"""Two steps that find neighbors: index each file of a side, and search in all files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from datatrove.utils.logging import logger

from st_paragram.core.files import read_json, write_json
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.distributed.mining import MiningStep, Side, write_table
from st_paragram.tools.neighbors.inexact import Index, choose_index, find_effort
from st_paragram.tools.neighbors.results import Neighbors, Vectors, united


class IndexVectors(MiningStep):
    """Index the vectors of each file of a side, as `mine` indexes parts of a text.

    An index has the minimum search effort that finds enough of the nearest neighbors of a sample of
    the other side. Memory: the vectors of a file and their index.

    Args:
        folder: Folder that all steps of mining share.
        side: Side to index, `source` or `target`.
        settings: Options of `mine`; `index`, `recall`, `neighbors` and `seed` are used.

    Example:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import IndexVectors
        >>> pipeline = [IndexVectors("mining", "source", MiningSettings(recall=0.99))]
    """

    name = "🔎 Index"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the index of each file of a task."""
        first = self.other.files()[0]  # random sentences, since texts are dealt by hash
        queries = self.other.vectors(first)
        settings = self.settings
        for file in self.own.files()[rank::world_size]:
            index = _index(self.own, file, self.other, settings=settings)
            effort = find_effort(queries, index, settings.neighbors, settings=settings)
            logger.info(f"{self.own.name}, file {file}: {index.factory}, {effort}")
            write_json(self.own.path("effort", file, ".json"), effort.effort)


class SearchVectors(MiningStep):
    """Find the neighbors of each sentence of a side on the other side.

    For the sentences of a file, a task searches all indexes of the other side, one after another.
    Memory: the vectors of a file, and another file of vectors and its index.

    Args:
        folder: Folder that all steps of mining share.
        side: Side of the queries, `source` or `target`.
        settings: Options of `mine`, which must be those of `IndexVectors`.

    Example:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import SearchVectors
        >>> pipeline = [SearchVectors("mining", "source", MiningSettings(neighbors=4))]
    """

    name = "🔎 Search"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the neighbors of the sentences of each file of a task."""
        k = min(self.settings.neighbors, len(self.other))
        for file in self.own.files()[rank::world_size]:
            vectors = self.own.vectors(file)
            parts = self._parts(vectors.rows(0, len(vectors)), k)
            neighbors = united(parts, len(vectors), k)
            cosines = neighbors.similarities.ravel()
            numbers = neighbors.indices.ravel()
            table = pa.table({"cosine": cosines, "number": numbers})
            write_table(table, self.own.path("neighbors", file))
            means = pa.table({"mean": neighbors.means})
            write_table(means, self.own.path("means", file))

    def _parts(self, queries: Vectors, k: int) -> Iterator[tuple[int, Neighbors]]:
        """Yield the neighbors of all queries in each file of the other side, as for `united`."""
        for file in self.other.files():
            index = _index(self.other, file, self.own, settings=self.settings)
            index.set_effort(read_json(self.other.path("effort", file, ".json")))
            part = index.search(queries, k)
            yield 0, Neighbors(part.similarities, part.indices + self.other.begins[file])


def _index(side: Side, file: int, queries: Side, settings: MiningSettings) -> Index:
    """Open the index of a file, or build it."""
    vectors = side.vectors(file)
    searches = len(queries) * len(side.files())  # all queries in all files
    factory = choose_index(settings.index, searches, len(vectors), dim=vectors.dim)
    return Index(factory or "Flat", vectors, side.path("index", file, ""), settings)
