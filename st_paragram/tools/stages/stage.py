"""What a stage is: tasks that can be done in any order, anywhere, each leaving one result and its marker."""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from st_paragram.errors import SettingsError
from st_paragram.tools.stages.metadata import metadata_file

#: Name of a folder of results, see `core.files.digest`.
RESULTS = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True)
class Stage(ABC):
    """A stage. Stages are small and travel to other processes; what they work on is in files.

    The results of one part of the work (of a text, of a direction of a search; most stages have one part) are in
    `<root>/<name>/<digest>`, where the digest distinguishes them from the results of other inputs and settings.

    Attributes:
        name: Of the stage and of its folder.
        root: The work folder, which all stages of a run share.
    """

    name: ClassVar[str]
    root: Path

    @abstractmethod
    def digests(self) -> Sequence[str]:
        """For each part what its results depend on, as `files.digest` gives it; may look at what is done."""

    @abstractmethod
    def results(self) -> Sequence[Path]:
        """The results of all tasks, in order; may look at what earlier stages have left."""

    @abstractmethod
    def run(self, task: int) -> None:
        """Do a task: write its result, then its metadata, each atomically."""

    def folder(self, part: int = 0) -> Path:
        """The folder with the results of a part."""
        return self.root / self.name / self.digests()[part]

    @property
    def folders(self) -> set[Path]:
        """The folders with all results."""
        return {self.root / self.name / each for each in self.digests()}

    def part_of(self, result: Path) -> int:
        """The part that a result belongs to; parts of one digest share their results, and the first represents all."""
        return list(self.digests()).index(result.parent.name)

    def local(self, task: int) -> bool:
        """Whether only the process that was started by the user can do this task."""
        return False

    def pending(self) -> list[int]:
        """Tasks that are not done."""
        return [task for task, path in enumerate(self.results()) if not metadata_file(path).is_file()]


def stage_names(stages: Sequence[Stage]) -> list[str]:
    """The names of stages, each once, in order."""
    return list(dict.fromkeys(stage.name for stage in stages))


def check_stage(names: Sequence[str], name: str) -> None:
    """Refuse the name of a stage that is not among those of all stages.

    Raises:
        SettingsError: There is no such stage.
    """
    if name not in names:
        raise SettingsError(f"no stage {name!r}; there are {', '.join(names)}")


def forget(stages: Sequence[Stage], name: str) -> None:
    """Remove what a stage and those after it have done, for whatever inputs and settings.

    Args:
        stages: All of them, in order.
        name: Of the stage.

    Raises:
        SettingsError: There is no such stage.
    """
    names = stage_names(stages)
    check_stage(names, name)
    for stage in stages:
        if names.index(stage.name) >= names.index(name):
            for results in (stage.root / stage.name).glob("*"):
                if RESULTS.fullmatch(results.name):
                    shutil.rmtree(results, ignore_errors=True)
