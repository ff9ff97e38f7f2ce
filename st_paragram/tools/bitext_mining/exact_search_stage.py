"""Fifth stage, exact: every sentence compared with every other one, each pair of sentences once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic, digest
from st_paragram.tools.bitext_mining.found_files import read_found
from st_paragram.tools.bitext_mining.search_plan import SearchPlan
from st_paragram.tools.search.exact import exact_both_ways, exact_within
from st_paragram.tools.search.neighbours import Neighbours, united
from st_paragram.tools.search.stored_search import without_self
from st_paragram.tools.search.threads import at_most
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage

_COLUMNS = ("similarities", "indices", "back_similarities", "back_indices")


@dataclass(frozen=True)
class ExactSearchStage(Stage):
    """A task compares one shard of the first text with all of the second one, or with the rest of the only one.

    Its result is an `.npz` file: the neighbours of the shard's rows, and for each row of the other text, or each row
    behind the shard, its neighbours in the shard.

    Attributes:
        plan: What is searched.
    """

    name: ClassVar[str] = "search"
    plan: SearchPlan

    def digests(self) -> list[str]:
        """The one digest."""
        searches = [self.plan.digest(direction) for direction in range(len(self.plan.directions))]
        return [digest(searches, self.plan.settings.rows)]

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
            found, rows, back, back_rows = _read(path)
            if direction == 0:
                yield self._begin(path), Neighbours(found, rows)
            else:
                yield 0, Neighbours(back, back_rows + self._begin(path))

    def _within(self) -> Iterator[tuple[int, Neighbours]]:
        for path in self.results():
            found, rows, back, back_rows = _read(path)
            begin = self._begin(path)
            yield begin, Neighbours(found, rows)
            yield begin + len(rows), Neighbours(back, back_rows)


def _read(path: Path) -> list[NDArray[Any]]:
    return read_found(path, _COLUMNS)
