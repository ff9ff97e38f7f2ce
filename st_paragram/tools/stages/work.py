"""The folder that stages work in, and how a run goes about its work.

Results are in `<folder>/<stage>/<digest>/<task>` with `<task>.json` next to each, written last. The digest is of all
that a stage's results depend on, so that only what has changed is rebuilt.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from st_paragram.core.files import check_output, locked, output_lock, remove_unfinished
from st_paragram.errors import ParagramError
from st_paragram.tools.stages.executors import Executor, LocalExecutor, StageTime
from st_paragram.tools.stages.stage import RESULTS, Stage, forget

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Work:
    """How a run goes about its work; nothing here changes what it makes.

    Attributes:
        folder: For the results of stages. None: hidden next to the output, `.<output>.work`.
        keep: Leave the folder there, so that another run need not do again what has not changed.
        force: A stage to do again, with all that follow it, though nothing has changed.
        executor: Who does the work; None: this process.
        temporary: Nothing is resumed: the folder is removed whatever happens, by who made it.
    """

    folder: Path | None = None
    keep: bool = False
    force: str | None = None
    executor: Executor | None = None
    temporary: bool = field(default=False, kw_only=True)

    @property
    def workers(self) -> int:
        """Processes that share the memory and the cores of a machine, at least 1."""
        return 1 if self.executor is None else self.executor.workers

    def folder_for(self, output: Path) -> Path:
        """The folder to work in."""
        return self.folder or output.with_name(f".{output.name}.work")

    def run(self, stages: Sequence[Stage]) -> list[StageTime]:
        """Do all that is not done.

        Raises:
            SettingsError: There is no stage to force of that name.
            ParagramError: What a task raises, or a word on tasks that were not done.
        """
        if self.force:
            forget(stages, self.force)
        return (self.executor or LocalExecutor()).run(stages)


@contextmanager
def work_folder(work: Work, output: Path) -> Iterator[Path]:
    """The folder to work in; it and the output are kept to one run at a time.

    It is removed when all is done, or when nothing can come of the work, unless it is to be kept. After an
    interruption, a full disk or a killed process there is work to save, and it stays.

    Args:
        work: Says where it is, and whether it is kept.
        output: What is made.

    Raises:
        ParagramError: Another run is writing the output or is at work in the folder; files cannot be written.
    """
    folder = work.folder_for(output)
    with output_lock(output, partial(check_output, output, overwrite=True)), locked(folder):
        try:
            yield folder
        except ParagramError:
            if not work.keep:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        except KeyboardInterrupt:
            if not work.temporary:
                logger.warning("what is done stays in %s; the same command resumes from there", folder)
            raise
        if not work.keep:
            shutil.rmtree(folder)


def prune(folder: Path, keep: Collection[Path]) -> None:
    """Remove what was done for other inputs and settings, and what killed runs have left unfinished.

    Args:
        folder: To work in; files and folders of other kinds stay, should somebody keep theirs here.
        keep: Of its `<stage>/<digest>`, those to be kept.
    """
    for results in sorted(folder.glob("*/*")):
        if results in keep:
            for place in (results, *filter(Path.is_dir, results.rglob("*"))):
                remove_unfinished(place)
        elif results.is_dir() and RESULTS.fullmatch(results.name):
            shutil.rmtree(results, ignore_errors=True)
