"""Fifth stage: the neighbours of every sentence, exactly or through indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from st_paragram.tools.bitext_mining.effort_stage import EffortStage
from st_paragram.tools.bitext_mining.exact_search_stage import ExactSearchStage
from st_paragram.tools.bitext_mining.index_search_stage import IndexSearchStage
from st_paragram.tools.bitext_mining.index_stage import IndexStage
from st_paragram.tools.bitext_mining.search_plan import SearchPlan
from st_paragram.tools.search.neighbours import Neighbours
from st_paragram.tools.stages.stage import Stage


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
    def _way(self) -> ExactSearchStage | IndexSearchStage:
        if self.plan.exact:
            return ExactSearchStage(self.root, self.plan)
        return IndexSearchStage(self.root, self.plan, self.index, self.effort)
