"""What is searched for what in a mining run, with which index, and in how many parts."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.core.files import digest
from st_paragram.core.threads import usable_threads
from st_paragram.errors import MiningError
from st_paragram.tools.bitext_mining.embed_stage import EmbedStage
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search import indexes
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.search.stored_search import rows_at_a_time
from st_paragram.tools.search.vectors import StoredVectors, blocks, even_size

VERSION = 2  # of the results of searches: count it up when they change
_RESERVE = 200 << 20  # bytes of the memory that are for queries and results


def neighbours_of(text: str, sentences: int, k: int, within: bool) -> int:
    """Neighbors to look for among the sentences of a text, itself included where it is `within` the text.

    Raises:
        MiningError: There are not as many sentences.
    """
    if k + within > sentences:
        seen = f"{text}: {sentences} distinct sentences, but {k} neighbors are needed"
        raise MiningError(f"{seen}; give more text or a smaller k")
    return k + within


@dataclass(frozen=True)
class SearchPlan:
    """The directions of a search: the n-th takes queries of one side and searches the rows of another.

    Attributes:
        texts: Names of the texts, for messages.
        embed: Whose vectors.
        settings: Of the mining run.
        workers: Processes that share the memory.
    """

    texts: tuple[str, ...]
    embed: EmbedStage
    settings: MiningSettings
    workers: int

    @property
    def directions(self) -> list[tuple[int, int]]:
        """Side of the queries, side of the rows that are searched."""
        return [(0, 0)] if self.settings.paraphrase else [(0, 1), (1, 0)]

    def within_one_text(self, direction: int) -> bool:
        """Whether queries are rows of what is searched."""
        queries, corpus = self.directions[direction]
        return queries == corpus

    def sizes(self, direction: int) -> tuple[int, int]:
        """Number of queries, number of rows that are searched."""
        queries, corpus = self.directions[direction]
        return self.embed.count(queries), self.embed.count(corpus)

    def queries(self, direction: int) -> StoredVectors:
        """Vectors of the queries."""
        return self.embed.vectors(self.directions[direction][0])

    def corpus(self, direction: int) -> StoredVectors:
        """Vectors of the rows that are searched."""
        return self.embed.vectors(self.directions[direction][1])

    def k(self, direction: int) -> int:
        """Neighbors to find, the query itself included where it is a row.

        Raises:
            MiningError: There are not as many sentences.
        """
        text, corpus = self.texts[self.directions[direction][1]], self.sizes(direction)[1]
        return neighbours_of(text, corpus, self.settings.k, self.within_one_text(direction))

    def factory(self, direction: int) -> str:
        """The index."""
        return indexes.choose_index(self.settings.index, *self.sizes(direction), self._dim)

    @property
    def exact(self) -> bool:
        """Whether everything is compared with everything; it is the same in both directions."""
        return self.factory(0) == FLAT

    def parts(self, direction: int) -> list[tuple[int, int]]:
        """Rows of each index; all indexes of a direction together are one corpus."""
        rows = indexes.rows_in(self.settings.memory, self._dim)
        count = self.sizes(direction)[1]
        return list(blocks(count, even_size(count, rows)))

    @property
    def threads(self) -> int:
        """Threads of each process."""
        return max(1, usable_threads() // self.workers)

    def exact_rows(self) -> int:
        """Rows that an exact search holds in memory at a time."""
        share = max(self.settings.memory - _RESERVE, _RESERVE) // self.workers
        return rows_at_a_time(share, self._dim)

    def digest(self, direction: int) -> str:
        """Distinguishes searches; memory matters only to approximate indexes."""
        texts = self.embed.digests()
        sides = [texts[side] for side in self.directions[direction]]
        factory = self.factory(direction)
        inexact = [] if factory == FLAT else [self.parts(direction), self.settings.recall, self.settings.seed]
        return digest(VERSION, sides, factory, self.k(direction), inexact)

    def digests(self) -> list[str]:
        """One for each direction."""
        return [self.digest(direction) for direction in range(len(self.directions))]

    @property
    def _dim(self) -> int:
        return self.embed.vectors(0).dim
