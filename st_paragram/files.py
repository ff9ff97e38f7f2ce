"""Files and folders: written whole or not at all, refused early, told apart, kept to one run at a time."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from st_paragram.errors import ParagramError, TextError

#: Standard input, where a file is asked for.
STDIN = "-"

_LOCK = "in-use.lock"


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/st_paragram`, or `~/.cache/st_paragram`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "st_paragram"


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


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all; its folder is made."""
    with atomic(path) as handle:
        handle.write(text.encode("utf-8"))


def write_json(path: Path, values: Any, indent: int | None = 1) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write a JSON file, whole or not at all; its folder is made."""
    write_text(path, json.dumps(values, indent=indent, ensure_ascii=False) + "\n")


def check_output(path: Path, overwrite: bool) -> None:
    """Refuse an output file before any work is done for it.

    Raises:
        ParagramError: it exists and must not be overwritten, is no regular file, or its folder cannot be written to.
    """
    if path.exists():
        if not path.is_file() or not path.name:
            raise ParagramError(f"{path} is no regular file; name a file")
        if not overwrite:
            raise ParagramError(f"{path} exists; choose another name or give --overwrite")
    if not _writable(folder := _nearest_folder(path)):
        raise ParagramError(f"{path}: {folder} is no folder that can be written to; choose another place")


def check_output_folder(
    path: Path, overwrite: bool, marker: str, kind: str, error: type[ParagramError] = ParagramError
) -> None:
    """Refuse an output folder before any work is done for it.

    Args:
        path: of the folder.
        overwrite: replace one that exists, if it is of the right kind.
        marker: the file that every folder of this kind has.
        kind: what it is, for messages: "model directory of st_paragram".
        error: to raise.

    Raises:
        ParagramError: it exists, and is of another kind or must not be overwritten; or it cannot be made.
    """
    if not path.name or not _writable(_nearest_folder(path)):
        raise error(f"{path}: no folder can be made there; choose another place")
    if not path.exists():
        return
    if not (path / marker).is_file():
        raise error(f"{path} exists and is no {kind}; choose another name")
    if not overwrite:
        raise error(f"{path} exists; choose another name or give --overwrite")


def _nearest_folder(path: Path) -> Path:
    """What exists of the folders above a path, the nearest."""
    return next((parent for parent in path.absolute().parents if parent.exists()), path)


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)


def digest(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """16 hexadecimal digits that tell JSON values apart."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def file_digest(path: str | Path) -> str:
    """Tell files apart by absolute path, size and time of change; a pipe is like no other, not even itself later.

    Raises:
        TextError: there is no such file.
    """
    if is_pipe(path):
        return digest(str(path), uuid.uuid4().hex)
    try:
        status = Path(path).stat()
    except OSError as error:
        raise TextError(f"{path}: {(error.strerror or 'unreadable').lower()}; check the path") from error
    return digest(str(Path(path).resolve()), status.st_size, status.st_mtime_ns)


def content_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        result = hashlib.sha256()
        while block := file.read(1 << 20):
            result.update(block)
    return result.hexdigest()


def is_pipe(path: str | Path) -> bool:
    """Whether only this process can read it, and only once: standard input (`-`), a pipe."""
    return str(path) == STDIN or (Path(path).exists() and not Path(path).is_file())


def size(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Keep a folder to one run at a time; the lock goes with the process, however it ends.

    Args:
        folder: made if it is not there.
        wait: for another run to end.

    Raises:
        ParagramError: another run is at work there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / _LOCK, timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ParagramError(f"{folder}: another run is at work there; wait for it, or name another folder") from error
    except (NotImplementedError, OSError):
        pass  # a shared file system without locks: nobody guards against a second run
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True)
class FileDescription:
    """A file's size in bytes, and the SHA-256 of its content in hexadecimal digits."""

    size: int
    sha256: str


def describe_files(path: Path) -> dict[str, FileDescription]:
    """A file by its name, or all files of a folder by their paths within it."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    root = path.parent if path.is_file() else path
    return {str(f.relative_to(root)): FileDescription(f.stat().st_size, content_digest(f)) for f in files}
