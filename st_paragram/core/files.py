"""Files and folders: written whole or not at all, refused early, distinguished, kept to one run at a time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from st_paragram.errors import InUseError, ParagramError, TextError

if TYPE_CHECKING:
    from filelock import BaseFileLock

#: Standard input, where a file is asked for.
STDIN = "-"
#: The environment variable that names the folder for everything stored outside the outputs that were named.
CACHE_VARIABLE = "ST_PARAGRAM_CACHE"

_Record = TypeVar("_Record")

_LOCK = "in-use.lock"
_OLD = "old"  # what a folder that is being replaced is called meanwhile
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part")
_ERROR_NUMBER = re.compile(r"(?:\bos error |\bOs \{ code: |\berrno = )(\d+)")  # as libraries in Rust and HDF5 write it
_TORCH_COULD_NOT_WRITE = re.compile(r"PytorchStreamWriter failed|unexpected pos \d+ vs")


def cache_folder() -> Path:
    """`$ST_PARAGRAM_CACHE`, or `$XDG_CACHE_HOME/st_paragram`, or `~/.cache/st_paragram`.

    Raises:
        ParagramError: None of them is known: this user has no home folder.
    """
    try:
        if named := os.environ.get(CACHE_VARIABLE):
            return Path(named).expanduser().absolute()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "st_paragram"
    except RuntimeError as error:  # as in a container, for a user without an entry in /etc/passwd
        raise ParagramError(
            f"no cache folder, because this user has no home folder; set {CACHE_VARIABLE} to a folder"
        ) from error


def writable_cache(folder: str = "") -> Path:
    """The cache, or a folder in it, for what work cannot do without; nothing is made yet.

    Raises:
        ParagramError: It cannot be written.
    """
    path = cache_folder() / folder
    try:
        writable = _not_writable(path / "file") is None
    except OSError:  # a folder above may not be looked into
        writable = False
    if not writable:
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
    """Give a place for a folder, which is still to be made there, that takes its name only when the block ends well.

    A folder of that name is replaced. If this process is killed meanwhile, it is there or `output_lock` brings it back.
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
    """An empty folder next to an output, removed at the end."""
    folder = _unfinished(output)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unfinished(path: Path) -> Path:
    """An unused hidden name next to a path: a task may run twice, on two machines that lost touch."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")


def remove_unfinished(folder: Path, name: str | None = None) -> None:
    """Remove what killed runs have left in a folder; nobody else may be writing there.

    A folder that was about to be replaced when its run was killed gets its name back.

    Args:
        folder: Of the outputs.
        name: Of one output; None: of all.
    """
    for left in list(folder.glob(".*.part")):
        found = _UNFINISHED.fullmatch(left.name)
        if found is None or name not in (None, found[1]):
            continue
        if left.is_dir():
            _bring_back(left / _OLD, folder / found[1])
            shutil.rmtree(left, ignore_errors=True)
        else:
            with suppress(OSError):  # it is another user's
                left.unlink()


def _bring_back(old: Path, path: Path) -> None:
    if old.exists() and not path.exists():
        old.rename(path)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all; its folder is made."""
    with atomic(path) as handle:
        handle.write(text.encode("utf-8"))


def write_json(path: Path, values: Any, indent: int | None = 1) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write a JSON file, whole or not at all; its folder is made."""
    write_text(path, json.dumps(values, indent=indent, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """The value in a JSON file.

    Raises:
        OSError, ValueError: The file cannot be read, or is not JSON in UTF-8.
    """
    return json.loads(Path(path).read_bytes())


def read_record(path: str | Path, kind: type[_Record]) -> _Record:
    """A dataclass from a JSON file that holds its fields, whose types are checked.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON, or a value is missing or of another type; the message is one line.
    """
    import pydantic  # takes too long for runs that read no record

    try:
        return pydantic.TypeAdapter(kind).validate_json(Path(path).read_bytes(), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(": ".join([*map(str, first["loc"]), first["msg"]])) from error


def file_for_folder(path: str | Path, folder: str = "a folder") -> str | None:
    """In words, that a path is a file where `folder` is expected; None: it is not a file."""
    with suppress(OSError, ValueError):  # what cannot be a name of a file, or may not be looked at
        if Path(path).is_file():
            return f"{path} is a file, where {folder} is expected"
    return None


def folder_for_file(path: str | Path, file: str = "a file") -> str | None:
    """In words, that a path is a folder where `file` is expected; None: it is not a folder."""
    with suppress(OSError, ValueError):
        if Path(path).is_dir():
            return f"{path} is a folder, where {file} is expected"
    return None


def file_in_the_way(path: Path) -> str | None:
    """In words, that a path, or one above it, is a file, so that no folder can be there; None: it is not so."""
    return file_for_folder(_nearest(path))


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless it is there.

    Raises:
        ParagramError: it, or one above it, is a file.
        OSError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        if wrong := file_in_the_way(path):
            raise ParagramError(f"{wrong}; name another folder") from error
        raise


def check_output(path: Path, overwrite: bool) -> None:
    """Refuse an output file before any work is done for it.

    Raises:
        ParagramError: it exists and must not be overwritten, is not a regular file, or its folder cannot be written to.
    """
    if path.exists():
        if wrong := folder_for_file(path):
            raise ParagramError(f"{wrong}; name a file")
        if not path.is_file():
            raise ParagramError(f"{path} is not a regular file; name a file")
        if not overwrite:
            raise ParagramError(f"{path} exists; choose another name or give --overwrite")
    if refusal := _not_writable(path):
        raise ParagramError(refusal)


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
    if not path.name:
        raise error(f"{path}: the folder cannot be created; choose another place")
    if refusal := _not_writable(path):
        raise error(refusal)
    if not path.exists():
        return
    if wrong := file_for_folder(path):
        raise error(f"{wrong}; choose another name")
    if not (path / marker).is_file():
        raise error(f"{path} exists and is not a {kind}; choose another name")
    if not overwrite:
        raise error(f"{path} exists; choose another name or give --overwrite")


def _nearest(path: Path) -> Path:
    """What exists of a path and the folders above it, the nearest."""
    return next((place for place in (path, *path.parents) if place.exists()), path)


def _not_writable(path: Path) -> str | None:
    """Why nothing can be made under a name, in words; None: it can."""
    folder = _nearest(path.parent)
    if wrong := file_for_folder(folder):
        return f"{wrong}; choose another place for {path.name}"
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return f"{folder} cannot be written to; choose another place for {path.name}"
    return None


def digest(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """16 hexadecimal digits that distinguish JSON values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_digest(name: str) -> bool:
    """Whether a name looks like what `digest` gives."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


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
        ParagramError: another run is at work there, or it is a file.
    """
    from filelock import FileLock

    make_folder(folder)
    lock = FileLock(folder / _LOCK, timeout=-1 if wait else 0)
    with _held(lock, f"{folder}: another run is using it; wait for it, or name another folder"):
        yield


@contextmanager
def output_lock(
    output: Path,
    check: Callable[[], None] | None = None,
    error: type[ParagramError] = ParagramError,
    *,
    wait: bool = False,
) -> Iterator[None]:
    """Keep an output, a file or a folder, to one run at a time; the lock goes with the process, however it ends.

    What killed runs have left of the output is removed first. The thread that has the lock may take it again.

    Args:
        output: what is made; its folder is created if needed.
        check: refuses the output. It is asked before anything is touched, and again under the lock: another run may
            have made the output meanwhile.
        error: to raise where something cannot be written.
        wait: for another run that is writing the output, in place of refusing.

    Raises:
        ParagramError: what `check` raises; another run is writing the output; or something cannot be written, be it
            that the disk is full.
    """
    from filelock import FileLock

    check = check or (lambda: None)
    check()
    with _in_one_line(output, error):
        output.parent.mkdir(parents=True, exist_ok=True)
        path = output.parent.resolve() / f".{output.name}.lock"
        if _refused(path):
            seen = f"{path} belongs to another user, who may be writing {output}"
            raise error(f"{seen}; wait for it, or name another output")
        lock = FileLock(path, timeout=-1 if wait else 0, is_singleton=True)
        again = lock.is_locked
        with _held(lock, f"another run is writing {output}; wait for it, or name another output") as held:
            try:
                if held and not again:
                    remove_unfinished(output.parent, output.name)
                check()
                yield
            finally:
                if not again:  # gone while it is held: who has opened it by then will find that it is no longer a file
                    with suppress(OSError):
                        path.unlink()


@contextmanager
def output_files(*paths: Path | None, overwrite: bool) -> Iterator[None]:
    """Keep files to one run at a time, see `output_lock` and `check_output`; None stands for a file not asked for."""
    with ExitStack() as stack:
        for path in paths:
            if path is not None:
                stack.enter_context(output_lock(path, partial(check_output, path, overwrite)))
        yield


def _refused(path: Path) -> bool:
    """Whether a file is there that may not be written; opening it is one step, as another run may remove it."""
    try:
        os.close(os.open(path, os.O_WRONLY))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _held(lock: BaseFileLock, refusal: str) -> Iterator[bool]:
    """Hold a lock; gives False on a file system without locks, where nobody guards against a second run."""
    from filelock import Timeout

    held = True
    try:
        lock.acquire()
    except Timeout as error:
        raise InUseError(refusal) from error
    except (NotImplementedError, OSError):
        held = False
    try:
        yield held
    finally:
        lock.release()


@contextmanager
def _in_one_line(output: Path, error: type[ParagramError]) -> Iterator[None]:
    try:
        yield
    except (ParagramError, BrokenPipeError):
        raise
    except Exception as reason:  # safetensors, tokenizers, torch and HDF5 raise others than OSError for a full disk
        if (why := _why(reason)) is None:
            raise
        why = why.removeprefix(f"{output}: ")
        advice = "free space, or choose another folder, and start again"
        raise error(f"{output}: could not be made ({why}); {advice}") from reason


def _why(error: Exception) -> str | None:
    """Why a file could not be read or written, in a few words; None for any other error."""
    if found := _ERROR_NUMBER.search(str(error)):
        return os.strerror(int(found[1]))
    if _TORCH_COULD_NOT_WRITE.search(str(error)):
        return "torch could not write a file"
    if not isinstance(error, OSError):
        return None
    what = os.strerror(error.errno) if error.errno else " ".join(str(error).split())
    return f"{error.filename}: {what}" if error.filename else what


@dataclass(frozen=True)
class FileDescription:
    """A file's size in bytes, and the SHA-256 of its content in hexadecimal digits."""

    size: int
    sha256: str


@dataclass(frozen=True)
class FolderDescription:
    """What a folder's description holds: its name, JSON values by name, and its files by their names."""

    name: str
    properties: dict[str, Any]
    files: dict[str, FileDescription]


def describe_files(path: Path) -> dict[str, FileDescription]:
    """A file by its name, or all files of a folder by their paths within it."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    root = path.parent if path.is_file() else path
    return {str(f.relative_to(root)): FileDescription(f.stat().st_size, content_digest(f)) for f in files}
