"""Fourth stage: how hard inexact indexes must look."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from st_paragram.tools.bitext_mining.index_stage import IndexStage
from st_paragram.tools.bitext_mining.search_plan import SearchPlan
from st_paragram.tools.search.effort import Effort, find_effort
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.search.threads import at_most
from st_paragram.tools.stages.metadata import read_metadata, write_metadata
from st_paragram.tools.stages.stage import Stage


@dataclass(frozen=True)
class EffortStage(Stage):
    """A task finds the effort of one direction, with a sample of its queries; its metadata are those of an `Effort`.

    Attributes:
        plan: What is searched.
        index: Its indexes.
    """

    name: ClassVar[str] = "effort"
    plan: SearchPlan
    index: IndexStage

    def digests(self) -> list[str]:
        """One for each direction."""
        return self.plan.digests()

    def results(self) -> list[Path]:
        """One for each direction with an inexact index."""
        inexact = [each for each in range(len(self.plan.directions)) if self.plan.factory(each) != FLAT]
        return [self.folder(direction) / "effort" for direction in inexact]

    def effort(self, direction: int) -> Effort:
        """What was found out about a direction with an inexact index."""
        return Effort(**read_metadata(self.folder(direction) / "effort"))

    def run(self, task: int) -> None:
        """Find out."""
        result, plan = self.results()[task], self.plan
        direction = self.part_of(result)
        parts = self.index.parts(direction)
        with at_most(plan.threads):
            effort = find_effort(
                plan.queries(direction),
                plan.corpus(direction),
                parts,
                plan.settings.k,
                plan.settings,
                own=plan.within_one_text(direction),
                part_rows=plan.exact_rows(),
            )
        write_metadata(result, asdict(effort))
