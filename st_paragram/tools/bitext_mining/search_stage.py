"""Fifth stage: the neighbors of every sentence, exactly or through indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic, digest
from st_paragram.errors import MiningError, refused
from st_paragram.tools.bitext_mining.effort_stage import EffortStage
from st_paragram.tools.bitext_mining.index_stage import IndexStage
from st_paragram.tools.bitext_mining.search_plan import SearchPlan
from st_paragram.tools.search.exact import exact_both_ways, exact_within
from st_paragram.tools.search.neighbours import Neighbours, united
from st_paragram.tools.search.stored_search import approximate, without_self
from st_paragram.tools.search.threads import at_most
from st_paragram.tools.search.vectors import StoredVectors
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage

_COLUMNS = ("similarities", "indices", "back_similarities", "back_indices")


@dataclass(frozen=True)
class SearchStage(Stage):
    """One of the two ways of searching; which one depends on the numbers of sentences, known when these are read.

    Attributes:
        plan: What is searched.
        index: Its indexes.
        effort: How hard they must look.
    """

    name: ClassVar[str] = "search"
    plan: SearchPlan
    index: IndexStage
    effort: EffortStage

    def digests(self) -> Sequence[str]:
        """As of the way that is taken."""
        return self._way.digests()

    def results(self) -> Sequence[Path]:
        """As of the way that is taken."""
        return self._way.results()

    def neighbours(self, direction: int) -> Neighbours:
        """All of a direction, in order."""
        return self._way.neighbours(direction)

    def run(self, task: int) -> None:
        """Search."""
        self._way.run(task)

    @property
    def _way(self) -> _ExactSearch | _IndexSearch:
        if self.plan.exact:
            return _ExactSearch(self.root, self.plan)
        return _IndexSearch(self.root, self.plan, self.index, self.effort)


@dataclass(frozen=True)
class _ExactSearch(Stage):
    """A task compares one shard of the first text with all of the second one, or with the rest of the only one.

    Its result is an `.npz` file: the neighbors of the shard's rows, and for each row of the other text, or each row
    behind the shard, its neighbors in the shard.

    Attributes:
        plan: What is searched.
    """

    name: ClassVar[str] = "search"
    plan: SearchPlan

    def digests(self) -> list[str]:
        """The one digest."""
        return [digest(self.plan.digests(), self.plan.settings.rows)]

    def results(self) -> list[Path]:
        """A file for each shard of the first text."""
        return [self.folder() / f"{path.stem}.npz" for path in self.plan.queries(0).shards]

    def neighbours(self, direction: int) -> Neighbours:
        """All of a direction, in order."""
        plan = self.plan
        count, k = plan.sizes(direction)[0], plan.k(direction)
        if not plan.within_one_text(direction):
            return united(self._of_direction(direction), count, k)
        return without_self(united(self._within(), count, k), np.arange(count), plan.settings.k)

    def run(self, task: int) -> None:
        """Search."""
        plan, path = self.plan, self.results()[task]
        queries, corpus, begin = plan.queries(0), plan.corpus(0), self._begin(path)
        end = min(begin + plan.settings.rows, len(queries))
        with at_most(plan.threads):
            if plan.within_one_text(0):
                found, back = exact_within(corpus, begin, end, plan.k(0), plan.exact_rows())
            else:
                found, back = exact_both_ways(queries.rows(begin, end), corpus, plan.k(0), plan.exact_rows())
        with atomic(path) as handle:
            np.savez(
                handle,
                similarities=found.similarities,
                indices=found.indices,
                back_similarities=back.similarities,
                back_indices=back.indices,
            )
        write_metadata(path, {"rows": end - begin})

    def _begin(self, path: Path) -> int:
        """First row of a task's shard."""
        return int(path.stem) * self.plan.settings.rows

    def _of_direction(self, direction: int) -> Iterator[tuple[int, Neighbours]]:
        for path in self.results():
            found, rows, back, back_rows = read_found(path, _COLUMNS)
            if direction == 0:
                yield self._begin(path), Neighbours(found, rows)
            else:
                yield 0, Neighbours(back, back_rows + self._begin(path))

    def _within(self) -> Iterator[tuple[int, Neighbours]]:
        for path in self.results():
            found, rows, back, back_rows = read_found(path, _COLUMNS)
            begin = self._begin(path)
            yield begin, Neighbours(found, rows)
            yield begin + len(rows), Neighbours(back, back_rows)


@dataclass(frozen=True)
class _IndexSearch(Stage):
    """A task searches for the neighbors of one shard of queries: `.npz` of `similarities` and `indices`, (n, k).

    Attributes:
        plan: What is searched.
        index: Its indexes.
        effort: How hard they must look.
    """

    name: ClassVar[str] = "search"
    plan: SearchPlan
    index: IndexStage
    effort: EffortStage

    def digests(self) -> list[str]:
        """One for each direction."""
        return [digest(each, self.plan.settings.shard_rows) for each in self.plan.digests()]

    def results(self) -> list[Path]:
        """A file for each shard of queries, direction by direction."""
        return [path for direction in range(len(self.plan.directions)) for path in self.files(direction)]

    def files(self, direction: int) -> list[Path]:
        """The results of a direction, in order."""
        folder = self.folder(direction)
        return [folder / f"{path.stem}.npz" for path in self.plan.queries(direction).shards]

    def neighbours(self, direction: int) -> Neighbours:
        """All of a direction, in order."""
        parts = [read_found(path, _COLUMNS[:2]) for path in self.files(direction)]
        similarities, indices = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Neighbours(similarities, indices)

    def run(self, task: int) -> None:
        """Search."""
        plan, path = self.plan, self.results()[task]
        direction, queries = self.part_of(path), plan.queries(self.part_of(path))
        begin = int(path.stem) * plan.settings.rows
        rows = queries.rows(begin, min(begin + plan.settings.rows, len(queries)))
        parts, effort = self.index.parts(direction), self.effort.effort(direction).effort
        with at_most(plan.threads):
            found = approximate(rows, _opened(plan.corpus(direction)), parts, plan.k(direction), effort)
        if plan.within_one_text(direction):
            found = without_self(found, begin + np.arange(len(rows)), plan.settings.k)
        with atomic(path) as handle:
            np.savez(handle, similarities=found.similarities, indices=found.indices)
        write_metadata(path, {"rows": len(rows)})


@lru_cache(maxsize=2)
def _opened(vectors: StoredVectors) -> StoredVectors:
    """The same vectors, whose lengths are computed once in a process; their paths have digests."""
    return vectors


def read_found(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays of a file of neighbors, by their names.

    Raises:
        MiningError: It is damaged.
    """
    with refused(MiningError, path, "damaged", "remove its folder and start again", BadZipFile), np.load(path) as file:
        return [file[name] for name in names]
