"""Files and folders: atomic writes, early checks of outputs, digests, and locks against concurrent runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from st_paragram.errors import InUseError, ParagramError, TextError, one_line

_Record = TypeVar("_Record")

STDIN = "-"  # stands for standard input in place of a file
CACHE_VARIABLE = "ST_PARAGRAM_CACHE"  # names the folder for everything that is not a named output
_OLD = "old"  # name of a folder while it is being replaced
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part")


def cache_folder() -> Path:
    """Return `$ST_PARAGRAM_CACHE`, or `$XDG_CACHE_HOME/st_paragram`, or `~/.cache/st_paragram`."""
    try:
        if named := os.environ.get(CACHE_VARIABLE):
            return Path(named).expanduser().absolute()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "st_paragram"
    except RuntimeError as error:  # as in a container, for a user without an entry in /etc/passwd
        raise ParagramError(f"no cache folder: this user has no home folder; set {CACHE_VARIABLE}") from error


def writable_cache(folder: str = "") -> Path:
    """Return the cache, or a folder in it, and check that it can be written; nothing is created yet."""
    path = cache_folder() / folder
    if not_writable(path / "file"):
        raise ParagramError(f"{path}: the cache is not writable; set {CACHE_VARIABLE} to a writable folder")
    return path


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name only when the `with` block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _unfinished(path)
    try:
        with part.open("wb") as handle:
            yield handle
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give the path of a folder to create, which takes its name only when the `with` block ends without an error.

    A folder of that name is replaced. If the process is killed meanwhile, `output_lock` restores the old folder.
    """
    with temporary_folder(path) as folder:
        new, old = folder / "new", folder / _OLD
        yield new
        try:
            if path.exists():
                path.rename(old)
            new.rename(path)
        finally:
            _bring_back(old, path)


@contextmanager
def temporary_folder(output: Path) -> Iterator[Path]:
    """Give an empty folder next to an output, which is removed at the end."""
    folder = _unfinished(output)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unfinished(path: Path) -> Path:
    """Return an unused hidden name next to a path."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")


def remove_unfinished(folder: Path, name: str | None = None) -> None:
    """Remove leftovers of killed runs in a folder, for one output or for all; no other run may be writing there."""
    for left in list(folder.glob(".*.part")):
        found = _UNFINISHED.fullmatch(left.name)
        if found is None or name not in (None, found[1]):
            continue
        if left.is_dir():
            _bring_back(left / _OLD, folder / found[1])
            shutil.rmtree(left, ignore_errors=True)
        else:
            with suppress(OSError):  # another user's
                left.unlink()


def _bring_back(old: Path, path: Path) -> None:
    if old.exists() and not path.exists():
        old.rename(path)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all; its folder is created."""
    with atomic(path) as handle:
        handle.write(text.encode("utf-8"))


def write_json(path: Path, values: Any, indent: int | None = 1) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write a JSON file, whole or not at all; its folder is created."""
    write_text(path, json.dumps(values, indent=indent, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Read the value in a JSON file."""
    return json.loads(Path(path).read_bytes())


def read_record(path: str | Path, kind: type[_Record]) -> _Record:
    """Read a dataclass from a JSON file with its fields; a `ValueError` of one line says what does not fit."""
    import pydantic  # slow to import, and many runs read no record

    try:
        return pydantic.TypeAdapter(kind).validate_json(Path(path).read_bytes(), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def file_for_folder(path: str | Path, folder: str = "a folder") -> str | None:
    """Return an error text if a path is a file where a folder is expected; None if it is not a file."""
    return f"{path} is a file, but {folder} is expected" if Path(path).is_file() else None


def folder_for_file(path: str | Path, file: str = "a file") -> str | None:
    """Return an error text if a path is a folder where a file is expected; None if it is not a folder."""
    return f"{path} is a folder, but {file} is expected" if Path(path).is_dir() else None


def not_writable(path: Path) -> str | None:
    """Return an error text if nothing can be created at a path; None if it can."""
    folder = next((place for place in path.parents if place.exists()), path.parent)
    if wrong := file_for_folder(folder):
        return f"{wrong}; choose another place for {path.name}"
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return f"{folder} is not writable; choose another place for {path.name}"
    return None


def check_output(path: Path, overwrite: bool) -> None:
    """Refuse an unusable output file before any work is done for it."""
    if path.exists():
        if not path.is_file():
            raise ParagramError(f"{folder_for_file(path) or f'{path} is not a regular file'}; name a file")
        if not overwrite:
            raise ParagramError(f"{path} exists; choose another name or give --overwrite")
    if refusal := not_writable(path):
        raise ParagramError(refusal)


def check_output_folder(
    path: Path, overwrite: bool, marker: str, kind: str, error: type[ParagramError] = ParagramError
) -> None:
    """Refuse an unusable output folder before any work is done for it; only a folder with the `marker` is replaced."""
    if not path.name:
        raise error(f"{path}: the folder cannot be created; choose another place")
    if refusal := not_writable(path):
        raise error(refusal)
    if not path.exists():
        return
    if wrong := file_for_folder(path):
        raise error(f"{wrong}; choose another name")
    if not (path / marker).exists():
        raise error(f"{path} exists and is not a {kind}; choose another name")
    if not overwrite:
        raise error(f"{path} exists; choose another name or give --overwrite")


def digest(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Return 16 hexadecimal digits that distinguish JSON values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def file_digest(path: str | Path) -> str:
    """Identify a file by absolute path, size and modification time; a pipe gets a new digest each time."""
    if is_pipe(path):
        return digest(str(path), uuid.uuid4().hex)
    try:
        status = Path(path).stat()
    except OSError as error:
        raise TextError(f"{path}: {one_line(error, about=path)}; check the path") from error
    return digest(str(Path(path).resolve()), status.st_size, status.st_mtime_ns)


def content_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal digits."""
    result = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            result.update(block)
    return result.hexdigest()


def is_pipe(path: str | Path) -> bool:
    """Whether a path can be read only once: standard input (`-`), a pipe."""
    return str(path) == STDIN or (Path(path).exists() and not Path(path).is_file())


def names_of(names: str | Path | Sequence[Any]) -> list[Any]:
    """Return names as a list, and one name as a list of one: a str is a sequence too, of letters."""
    return [names] if isinstance(names, str | Path) else list(names)


def size(folder: Path) -> int:
    """Return the total size of a folder's files in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Create a folder and lock it for this run; the lock ends with the process, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    refusal = f"{folder}: another run is using it; wait for it, or name another folder"
    with _held(folder / "in-use.lock", wait, refusal, reentrant=False):
        yield


@contextmanager
def output_lock(output: Path, check: Callable[[], None] | None = None, wait: bool = False) -> Iterator[None]:
    """Lock an output, a file or a folder, for this run; the lock ends with the process, however it ends.

    Leftovers of killed runs are removed first. The thread that has the lock may take it again. `check` may refuse the
    output. It runs before anything is touched, and again under the lock, since another run may have written meanwhile.
    """
    check = check or (lambda: None)
    check()
    output.parent.mkdir(parents=True, exist_ok=True)
    path = output.parent.resolve() / f".{output.name}.lock"
    refusal = f"another run is writing {output}; wait for it, or name another output"
    with _held(path, wait, refusal, reentrant=True) as outermost:
        if outermost:
            remove_unfinished(output.parent, output.name)
        try:
            check()
            yield
        finally:
            if outermost:
                path.unlink(missing_ok=True)  # under the lock: filelock ignores a file that is no longer there


@contextmanager
def output_files(*paths: Path | None, overwrite: bool) -> Iterator[None]:
    """Lock output files for this run, see `output_lock` and `check_output`; None stands for a file that is not made."""
    with ExitStack() as stack:
        for path in paths:
            if path is not None:
                stack.enter_context(output_lock(path, partial(check_output, path, overwrite)))
        yield


@contextmanager
def _held(path: Path, wait: bool, refusal: str, reentrant: bool) -> Iterator[bool]:
    """Hold a lock; yield whether it was taken now: False if this thread has it already, or locks do not work here."""
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=-1 if wait else 0, is_singleton=reentrant)
    outermost = not lock.is_locked
    try:
        lock.acquire()
    except Timeout as error:
        raise InUseError(refusal) from error
    except PermissionError:
        raise
    except (NotImplementedError, OSError):  # on a file system without locks, nothing prevents a second run
        outermost = False
    try:
        yield outermost
    finally:
        lock.release()


@dataclass(frozen=True)
class FileDescription:
    """A file's size in bytes, and the SHA-256 of its content in hexadecimal digits."""

    size: int
    sha256: str


def describe_files(path: Path) -> dict[str, FileDescription]:
    """Describe a file by its name, or all files of a folder by their paths within it."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    root = path.parent if path.is_file() else path
    return {str(file.relative_to(root)): FileDescription(file.stat().st_size, content_digest(file)) for file in files}
