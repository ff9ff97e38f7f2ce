"""Two steps that find neighbors: index a side in parts, and search in all parts."""

from __future__ import annotations

from collections.abc import Iterator

from datatrove.utils.logging import logger

from st_paragram.core.files import read_json, write_json
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.distributed.mining import MiningStep, Side, write_table
from st_paragram.tools.neighbors.inexact import Index, choose_index, find_effort
from st_paragram.tools.neighbors.results import Neighbors, Vectors, united


class IndexVectors(MiningStep):
    """Index the vectors of a side in parts, as `mine` does.

    A part is one file or several consecutive files, with 1 KB of `memory` for each sentence. Its
    index has the minimum search effort with enough recall for a sample of the other side.
    Memory: the vectors of a part and their index.

    Args:
        folder: Folder that all steps of mining share.
        side: Side to index, `source` or `target`.
        settings: Options of `mine`; `index`, `recall`, `neighbors`, `memory` and `seed` are used.

    Example:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import IndexVectors
        >>> pipeline = [IndexVectors("mining", "source", MiningSettings(recall=0.99))]
    """

    name = "🔎 Index"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the index of each part of a task."""
        settings = self.settings
        # a file has random sentences, since texts are dealt by hash
        queries = self.other.vectors(self.other.files()[:1])
        for files in self.own.parts(settings.memory)[rank::world_size]:
            index = _index(self.own, files, len(self.other), settings=settings)
            effort = find_effort(queries, index, settings.neighbors, settings=settings)
            logger.info(f"{self.own.name}, {len(files)} files: {index.factory}, {effort}")
            write_json(self.own.path("effort", files[0], ".json"), effort.effort)


class SearchVectors(MiningStep):
    """Find the neighbors of each sentence of a side on the other side.

    For the sentences of a file, a task searches all parts of the other side.
    Memory: the vectors of a file, and those of a part with their index.

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
            vectors = self.own.vectors([file])
            parts = self._parts(vectors.rows(0, len(vectors)), k)
            neighbors = united(parts, len(vectors), k)
            columns = {
                "cosine": neighbors.similarities.ravel(),
                "number": neighbors.indices.ravel(),
            }
            write_table(columns, self.own.path("neighbors", file))
            write_table({"mean": neighbors.means}, self.own.path("means", file))

    def _parts(self, queries: Vectors, k: int) -> Iterator[tuple[int, Neighbors]]:
        """Yield the neighbors of all queries in each part of the other side, as for `united`."""
        for files in self.other.parts(self.settings.memory):
            effort = read_json(self.other.path("effort", files[0], ".json"))
            index = _index(self.other, files, len(self.own), settings=self.settings)
            index.set_effort(effort)
            part = index.search(queries, k)
            yield 0, Neighbors(part.similarities, part.indices + self.other.begins[files[0]])


def _index(side: Side, files: list[int], queries: int, settings: MiningSettings) -> Index:
    """Open the index of a part, which is searched for a number of queries, or build it."""
    vectors = side.vectors(files)
    searches = queries * len(side) // len(vectors)  # in all parts
    factory = choose_index(settings.index, searches, len(vectors), dim=vectors.dim)
    return Index(factory or "Flat", vectors, side.path("index", files[0], ""), settings)
