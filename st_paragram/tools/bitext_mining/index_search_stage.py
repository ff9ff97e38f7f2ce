"""Fifth stage, inexact: the neighbours of every sentence, through indexes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from st_paragram.core.files import atomic, digest
from st_paragram.tools.bitext_mining.effort_stage import EffortStage
from st_paragram.tools.bitext_mining.found_files import read_found
from st_paragram.tools.bitext_mining.index_stage import IndexStage
from st_paragram.tools.bitext_mining.search_plan import SearchPlan
from st_paragram.tools.search.neighbours import Neighbours
from st_paragram.tools.search.stored_search import approximate, without_self
from st_paragram.tools.search.threads import at_most
from st_paragram.tools.search.vectors import StoredVectors
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage


@dataclass(frozen=True)
class IndexSearchStage(Stage):
    """A task searches for the neighbours of one shard of queries: `.npz` of `similarities` and `indices`, (n, k).

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
        rows = self.plan.settings.shard_rows
        return [digest(self.plan.digest(direction), rows) for direction in range(len(self.plan.directions))]

    def results(self) -> list[Path]:
        """A file for each shard of queries, direction by direction."""
        return [path for direction in range(len(self.plan.directions)) for path in self.files(direction)]

    def files(self, direction: int) -> list[Path]:
        """The results of a direction, in order."""
        folder = self.folder(direction)
        return [folder / f"{path.stem}.npz" for path in self.plan.queries(direction).shards]

    def neighbours(self, direction: int) -> Neighbours:
        """All of a direction, in order."""
        parts = [read_found(path, ("similarities", "indices")) for path in self.files(direction)]
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
