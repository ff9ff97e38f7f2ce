"""What a stage is: tasks that can be done in any order, anywhere, each leaving one result and its marker."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from st_paragram.errors import SettingsError
from st_paragram.stages.work import metadata_file


class Stage(ABC):
    """A stage. Stages are small and travel to other processes; what they work on is in files.

    Attributes:
        name: Of the stage and of its folder.
    """

    name: ClassVar[str]

    @abstractmethod
    def results(self) -> Sequence[Path]:
        """The results of all tasks, in order; may look at what earlier stages have left."""

    @abstractmethod
    def run(self, task: int) -> None:
        """Do a task: write its result, then its metadata, each atomically."""

    @property
    @abstractmethod
    def folders(self) -> set[Path]:
        """The folders with the results."""

    def local(self, task: int) -> bool:
        """Whether only the process that was started by the user can do this task."""
        return False

    def pending(self) -> list[int]:
        """Tasks that are not done."""
        return [task for task, path in enumerate(self.results()) if not metadata_file(path).is_file()]


def forget(stages: Sequence[Stage], name: str) -> None:
    """Remove what a stage and those after it have done.

    Args:
        stages: All of them, in order.
        name: Of the stage.

    Raises:
        SettingsError: There is no such stage.
    """
    names = list(dict.fromkeys(stage.name for stage in stages))
    if name not in names:
        raise SettingsError(f"no stage {name!r}; there are {', '.join(names)}")
    for stage in reversed(stages):  # an earlier one knows the folders of a later one
        if names.index(stage.name) >= names.index(name):
            for folder in stage.folders:
                shutil.rmtree(folder, ignore_errors=True)
