"""Third stage: indexes, where not everything is compared with everything."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from st_paragram.core.files import atomic
from st_paragram.tools.bitext_mining.search_plan import SearchPlan
from st_paragram.tools.search import indexes
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage


@dataclass(frozen=True)
class IndexStage(Stage):
    """A task builds the index of one part; there is none for exact searches.

    Attributes:
        plan: What is searched.
    """

    name: ClassVar[str] = "index"
    plan: SearchPlan

    def digests(self) -> list[str]:
        """One for each direction."""
        return self.plan.digests()

    def results(self) -> list[Path]:
        """An index for each part, direction by direction."""
        return [path for direction in range(len(self.plan.directions)) for path in self.files(direction)]

    def files(self, direction: int) -> list[Path]:
        """The indexes of a direction."""
        if self.plan.factory(direction) == FLAT:
            return []
        folder = self.folder(direction)
        return [folder / f"{number:04d}.faiss" for number in range(len(self.plan.parts(direction)))]

    def parts(self, direction: int) -> list[tuple[int, Any]]:
        """Where each part begins, and its index, mapped."""
        starts = [begin for begin, _ in self.plan.parts(direction)]
        return [(begin, _index(path)) for begin, path in zip(starts, self.files(direction), strict=True)]

    def run(self, task: int) -> None:
        """Build an index; raises as `indexes.build`."""
        started, path = time.perf_counter(), self.results()[task]
        direction = self.part_of(path)
        begin, end = self.plan.parts(direction)[int(path.stem)]
        vectors, factory = self.plan.corpus(direction), self.plan.factory(direction)
        index = indexes.build(factory, vectors, begin, end, self.plan.settings.seed)
        with atomic(path) as handle:
            indexes.write(index, Path(handle.name))
        write_metadata(path, {"seconds": time.perf_counter() - started})


@lru_cache(maxsize=64)
def _index(path: Path) -> Any:  # noqa: ANN401
    """Mapped once in a process; the path has its digest."""
    return indexes.read(path)
