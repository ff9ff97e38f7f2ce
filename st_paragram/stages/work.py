"""The folder that stages work in: results of tasks by stage and digest, and who is at work there.

`<folder>/<stage>/<digest>/<task>` with `<task>.json` beside it, written last: a task is done if its JSON file is there.
The digest is of all that a stage's results depend on, so that what has changed is made anew and nothing else.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from st_paragram.errors import ParagramError, StoreError
from st_paragram.files import atomic, locked

logger = logging.getLogger(__name__)


def metadata_file(path: Path) -> Path:
    """The JSON file beside a task's result."""
    return path.with_name(f"{path.name}.json")


def write_metadata(path: Path, facts: Mapping[str, Any]) -> None:
    """Mark a task as done: `path` is its result, which is complete, `facts` what is worth knowing of it."""
    with atomic(metadata_file(path)) as handle:
        handle.write(json.dumps(facts, sort_keys=True).encode())


def read_metadata(path: Path) -> dict[str, Any]:
    """The facts of a task that is done.

    Raises:
        StoreError: The task is not done, or its facts are damaged.
    """
    try:
        facts: dict[str, Any] = json.loads(metadata_file(path).read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(f"{metadata_file(path)}: not readable ({error}); remove its folder and start again") from error
    return facts


@contextmanager
def tidied(folder: Path, keep: bool) -> Iterator[None]:
    """Work in a folder and remove it when all is done, or nothing can come of it, unless it is to be kept.

    After an interruption or a full disk there is work to save, and it stays.
    """
    with locked(folder):
        try:
            yield
        except ParagramError:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        except KeyboardInterrupt:
            logger.warning("what is done stays in %s; the same command goes on from there", folder)
            raise
        if not keep:
            shutil.rmtree(folder)


def prune(folder: Path, keep: Callable[[Path], bool]) -> None:
    """Remove the results of other texts and settings: every `<stage>/<digest>` that is not to be kept."""
    for results in sorted(folder.glob("*/*")):
        if results.is_dir() and not keep(results):
            shutil.rmtree(results, ignore_errors=True)
