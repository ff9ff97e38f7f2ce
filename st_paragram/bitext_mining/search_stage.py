"""Fifth stage: the neighbours of every sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.bitext_mining.effort_stage import EffortStage
from st_paragram.bitext_mining.index_stage import IndexStage
from st_paragram.bitext_mining.search_plan import SearchPlan
from st_paragram.core.threads import usable_cores
from st_paragram.damage import DAMAGED, one_line
from st_paragram.errors import MiningError
from st_paragram.files import atomic, digest
from st_paragram.npy_files import read_npz
from st_paragram.search import indexes
from st_paragram.search.neighbours import Neighbours, Vectors
from st_paragram.search.settings import FLAT
from st_paragram.search.stored_search import approximate, exact, without_self
from st_paragram.stages.metadata import write_metadata
from st_paragram.stages.stage import Stage


@dataclass(frozen=True)
class SearchStage(Stage):
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
        parts = [_found(path) for path in self.files(direction)]
        similarities, indices = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Neighbours(similarities, indices)

    def run(self, task: int) -> None:
        """Search."""
        plan, path = self.plan, self.results()[task]
        direction, queries = self.part_of(path), plan.queries(self.part_of(path))
        begin = int(path.stem) * plan.settings.rows
        rows = queries.rows(begin, min(begin + plan.settings.rows, len(queries)))
        indexes.use_threads(max(1, usable_cores() // plan.workers))
        found = self._search(direction, rows)
        if plan.within_one_text(direction):
            found = without_self(found, begin + np.arange(len(rows)), plan.settings.k)
        with atomic(path) as handle:
            np.savez(handle, similarities=found.similarities, indices=found.indices)
        write_metadata(path, {"rows": len(rows)})

    def _search(self, direction: int, queries: Vectors) -> Neighbours:
        plan = self.plan
        k, corpus = plan.k(direction), plan.corpus(direction)
        if plan.factory(direction) == FLAT:
            return exact(queries, corpus, k, plan.exact_rows())
        parts = self.index.parts(direction)
        return approximate(queries, corpus, parts, k, self.effort.effort(direction).effort)


def _found(path: Path) -> list[NDArray[Any]]:
    """Similarities and rows of a shard of queries."""
    try:
        return read_npz(path, ("similarities", "indices"), ("float32", "int64"))
    except DAMAGED as error:
        raise MiningError(f"{path}: damaged ({one_line(error)}); remove its folder and start again") from error
