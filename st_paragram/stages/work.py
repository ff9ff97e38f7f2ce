"""The folder that stages work in: results of tasks by stage and digest, and who is at work there.

`<folder>/<stage>/<digest>/<task>` with `<task>.json` beside it, written last: a task is done if its JSON file is there.
The digest is of all that a stage's results depend on, so that what has changed is made anew and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from st_paragram.data.streams import STDIN
from st_paragram.errors import ParagramError, StoreError, TextError

logger = logging.getLogger(__name__)

_LOCK = "in-use.lock"


def digest(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """16 hexadecimal digits that tell JSON values apart."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name only when the `with` block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # a task may run twice, on two machines that lost touch
    try:
        with part.open("wb") as handle:
            yield handle
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def file_digest(path: str | Path) -> str:
    """Tell files apart by absolute path, size and time of change; a pipe is like no other, not even itself later.

    Raises:
        TextError: There is no such file.
    """
    if is_pipe(path):
        return digest(str(path), uuid.uuid4().hex)
    try:
        status = Path(path).stat()
    except OSError as error:
        raise TextError(f"{path}: {(error.strerror or 'unreadable').lower()}; check the path") from error
    return digest(str(Path(path).resolve()), status.st_size, status.st_mtime_ns)


def is_pipe(path: str | Path) -> bool:
    """Whether only this process can read it, and only once: standard input (`-`), a pipe."""
    return str(path) == STDIN or (Path(path).exists() and not Path(path).is_file())


def facts_file(path: Path) -> Path:
    """The JSON file beside a task's result."""
    return path.with_name(f"{path.name}.json")


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Mark a task as done: `path` is its result, which is complete, `facts` what is worth knowing of it."""
    with atomic(facts_file(path)) as handle:
        handle.write(json.dumps(facts, sort_keys=True).encode())


def read_facts(path: Path) -> dict[str, Any]:
    """The facts of a task that is done.

    Raises:
        StoreError: The task is not done, or its facts are damaged.
    """
    try:
        facts: dict[str, Any] = json.loads(facts_file(path).read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(f"{facts_file(path)}: not readable ({error}); remove its folder and start again") from error
    return facts


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Keep a folder to one run at a time; the lock goes with the process, however it ends.

    Args:
        folder: Made if it is not there.
        wait: For another run to end.

    Raises:
        ParagramError: Another run is at work there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as handle:
        _lock(handle, folder, wait)
        yield


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


def size(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _lock(handle: IO[str], folder: Path, wait: bool) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows, where nobody guards against a second run
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise ParagramError(f"{folder}: another run is at work there; wait for it, or name another folder") from error
    except OSError:  # a shared file system without locks
        return
