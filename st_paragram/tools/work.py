"""A folder to work in, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from st_paragram.core.files import check_output, locked, output_lock
from st_paragram.errors import ParagramError

logger = logging.getLogger(__name__)


@contextmanager
def work_folder(output: Path, overwrite: bool = False, folder: Path | None = None) -> Iterator[Path]:
    """Give a folder to work in; it and the output are kept to one run at a time.

    Without a `folder`, it is hidden next to the output, and removed when all is done or when nothing can come of the
    work, which a `ParagramError` says. After anything else, such as a full disk or Ctrl-C, it stays, and the same run
    goes on from there. A `folder` that is named stays in any case.

    Args:
        output: The file to make.
        overwrite: It may be replaced.
        folder: Where to work.
    """
    place = folder or output.with_name(f".{output.name}.work")
    with output_lock(output, partial(check_output, output, overwrite)), locked(place):
        try:
            yield place
        except ParagramError:
            if folder is None:
                shutil.rmtree(place, ignore_errors=True)
            raise
        except KeyboardInterrupt:
            logger.warning("what is done stays in %s; the same command goes on from there", place)
            raise
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


def make(path: Path, write: Callable[[Path], object]) -> Path:
    """Make a file or a folder unless it is there, and return its path.

    `write` gets another path, next to it and with the same suffix, which takes the name when `write` has returned: what
    is there is whole. The name should say what the contents depend on.
    """
    if not path.exists():
        part = path.with_name(f".{path.name}")
        part.parent.mkdir(parents=True, exist_ok=True)
        if part.is_dir():
            shutil.rmtree(part)  # of a run that was killed
        write(part)
        part.replace(path)
    return path
