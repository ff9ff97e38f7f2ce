"""Files and folders: atomic writes, early checks of outputs, digests, and locks against concurrent
runs.

Only three kinds of files and folders are ever removed: folders with the file `MARKER`, which this
package made; hidden names with 12 random digits, which `atomic` and `temporary_folder` choose; and
the empty files that serve as locks.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from st_paragram.errors import InUseError, ParagramError, TextError, one_line

logger = logging.getLogger(__name__)

_Record = TypeVar("_Record")

STDIN = "-"  # stands for standard input in place of a file
CACHE_VARIABLE = "ST_PARAGRAM_CACHE"  # names the folder for everything that is not a named output
MARKER = ".made-by-st_paragram"  # a file in each folder that this package made and may remove
_MARK = b"st_paragram made this folder and will remove it. Keep no files of yours here.\n"
_OLD = "old"  # name of a folder while it is being replaced
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part")
# a full disk, a used-up quota, a limit of the system
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Words of libraries in errors for a full disk: of Rust, numpy, torch.
_FULL_TEXT = re.compile(
    r"(?i)no space left|storagefull|\d+ requested and \d+ written|streamwriter failed"
    r" writing|unexpected pos \d+ vs \d+"
)

# folder of a part of a pipeline
_PART = re.compile(r"((\w+_)?\d+_\w+|language-\w+|decoders)(/.*)?")
#: Files of each kind of output folder, by the file or folder that marks the kind. A pattern without
#: a slash is for names in the folder itself and in the folders of a pipeline's parts.
_OUTPUT_FOLDERS = {
    "st_paragram.json": (
        *(
            "st_paragram.json",
            "training.json",
            "modules.json",
            "*config.json",
            "config_sentence_transformers.json",
            "*.safetensors",
            "*.index.json",
        ),
        *(
            "*.model",
            "tokenizer.json",
            "special_tokens_map.json",
            "added_tokens.json",
            "vocab.json",
            "vocab.txt",
        ),
        *("merges.txt", "*.jinja", "README.md", ".gitattributes"),
    ),
    "embeddings.json": ("embeddings.json", "shard-*.npy"),
    "sentences.lance": ("sentences.lance/*", "in-use.lock"),
}


def cache_folder() -> Path:
    """Return `$ST_PARAGRAM_CACHE`, or `$XDG_CACHE_HOME/st_paragram`, or `~/.cache/st_paragram`."""
    try:
        if named := os.environ.get(CACHE_VARIABLE):
            return Path(named).expanduser().absolute()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "st_paragram"
    except RuntimeError as error:  # as in a container, for a user without an entry in /etc/passwd
        raise ParagramError(
            f"no cache folder: this user has no home folder; set {CACHE_VARIABLE}"
        ) from error


def writable_cache(folder: str = "") -> Path:
    """Return the cache, or a folder in it, and check that it can be written; nothing is created
    yet.
    """
    path = cache_folder() / folder
    if not_writable(path / "file"):
        raise ParagramError(
            f"{path}: the cache is not writable; set {CACHE_VARIABLE} to a writable folder"
        )
    return path


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name only when the `with` block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _unfinished(path)
    try:
        with naming_full_disk(path):
            with part.open("wb") as handle:
                yield handle
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give the path of a folder to create, which takes its name only when the `with` block ends
    without an error.

    A folder of that name is replaced. If the process is killed meanwhile, `output_lock` restores
    the old folder.
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
    """Give a folder of ours next to an output, which is removed at the end."""
    folder = _unfinished(output)
    folder.mkdir(parents=True)
    try:
        with naming_full_disk(output):
            (folder / MARKER).write_bytes(_MARK)
            yield folder
    finally:
        _remove(folder)


def is_own_folder(path: Path) -> bool:
    """Whether this package made a folder, so that it may remove it; never true for a link."""
    try:
        return not path.is_symlink() and (path / MARKER).read_bytes() == _MARK
    except OSError:
        return False


def make_own_folder(path: Path) -> None:
    """Create a folder that this package may remove; accept such a folder of an earlier run, and
    refuse any other.
    """
    if is_own_folder(path):
        return
    if path.exists() or path.is_symlink():
        raise ParagramError(
            f"{path} exists, and this version of st_paragram did not make it; move it elsewhere"
        )
    with temporary_folder(path) as folder:
        new = folder / "new"
        new.mkdir()
        (new / MARKER).write_bytes(_MARK)
        try:
            new.rename(path)  # whole, so that a killed run leaves no folder without a marker
        except OSError:
            if not is_own_folder(path):  # another run was faster
                raise


def remove_own_folder(path: Path) -> None:
    """Remove a folder of `make_own_folder`, and leave any other as it is."""
    if is_own_folder(path):
        with suppress(OSError):  # at once, so that a killed run leaves no half of it under its name
            path = path.rename(_unfinished(path))
        _remove(path)


def _remove(folder: Path) -> None:
    """Remove a folder of ours, the marker last."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != MARKER:
                path.unlink()
        if {path.name for path in folder.iterdir()} <= {MARKER}:
            (folder / MARKER).unlink(missing_ok=True)
            folder.rmdir()


def _unfinished(path: Path) -> Path:
    """Return an unused hidden name next to a path."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")


def remove_unfinished(folder: Path, name: str | None = None) -> None:
    """Remove leftovers of killed runs in a folder, for one output or for all; no other run may be
    writing there.
    """
    for left in list(folder.glob(".*.part")):
        match = _UNFINISHED.fullmatch(left.name)
        if match is None or name not in (None, match[1]) or left.is_symlink():
            continue
        if left.is_dir():
            _bring_back(left / _OLD, folder / match[1])
        with suppress(OSError):  # another user's
            if not left.is_dir():
                left.unlink()
            # killed at once
            elif is_own_folder(left) or {path.name for path in left.iterdir()} <= {MARKER}:
                _remove(left)


def _bring_back(old: Path, path: Path) -> None:
    if old.exists() and not path.exists():
        old.rename(path)


def is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, or the error that it was raised from, is that of a full disk; libraries
    have many forms.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if _FULL_TEXT.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Turn any library's error for a full disk into an `OSError` that names the path, unless it
    names a file.
    """
    try:
        yield
    except Exception as error:
        named = isinstance(error, OSError) and error.filename is not None
        if named or isinstance(error, ParagramError) or not is_full_disk(error):
            raise
        number = (
            error.errno if isinstance(error, OSError) and error.errno in _FULL else errno.ENOSPC
        )
        # a temporary folder, whose output the user knows
        if match := _UNFINISHED.fullmatch(path.parent.name):
            path = path.parent.with_name(match[1])
        raise OSError(number, os.strerror(number), str(path)) from error


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all; its folder is created."""
    with atomic(path) as handle:
        handle.write(text.encode("utf-8"))


def write_json(path: Path, values: Any, indent: int | None = 1) -> None:
    """Write a JSON file, whole or not at all; its folder is created."""
    write_text(path, json.dumps(values, indent=indent, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read the value in a JSON file."""
    return json.loads(Path(path).read_bytes())


def read_record(path: str | Path, kind: type[_Record]) -> _Record:
    """Read a dataclass from a JSON file with its fields; a `ValueError` of one line says what does
    not fit.
    """
    import pydantic  # slow to import, and many runs read no record

    try:
        return pydantic.TypeAdapter(kind).validate_json(Path(path).read_bytes(), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def file_for_folder(path: str | Path, folder: str = "a folder") -> str | None:
    """Return an error text if a path is a file where a folder is expected; None if it is not a
    file.
    """
    return f"{path} is a file, but {folder} is expected" if Path(path).is_file() else None


def folder_for_file(path: str | Path, file: str = "a file") -> str | None:
    """Return an error text if a path is a folder where a file is expected; None if it is not a
    folder.
    """
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
    if path.is_symlink() and not path.exists():
        raise ParagramError(
            f"{path} is a link to a file that does not exist; remove it or choose another name"
        )
    if path.exists():
        if not path.is_file():
            raise ParagramError(
                f"{folder_for_file(path) or f'{path} is not a regular file'}; name a file"
            )
        if not overwrite:
            raise ParagramError(f"{path} exists; choose another name or give --overwrite")
    if refusal := not_writable(path):
        raise ParagramError(refusal)


def check_different(outputs: Sequence[Path], inputs: Sequence[str | Path] = ()) -> None:
    """Refuse outputs that are the same file as another output or an input, also through links."""
    names = {os.path.realpath(path): f"the input {path}" for path in inputs if not is_pipe(path)}
    for path in outputs:
        file = os.path.realpath(path)  # unlike `resolve`, it takes links in a circle
        if file in names:
            raise ParagramError(
                f"{path} and {names[file]} are the same file; give them different names"
            )
        names[file] = f"the output {path}"


def check_new(path: Path) -> None:
    """Refuse an output that exists, for scripts that have no option to replace it."""
    if path.exists() or path.is_symlink():
        raise ParagramError(f"{path} exists; move it or choose another name")


def check_output_folder(
    path: Path, overwrite: bool, marker: str, kind: str, error: type[ParagramError] = ParagramError
) -> None:
    """Refuse an unusable output folder before any work is done for it.

    Only a folder with the `marker` is replaced, and only if all its files are those of such a
    folder.
    """
    if not path.name or path.name == "..":
        raise error(f"{path}: the folder cannot be created; choose another place")
    if path.is_symlink() and not path.exists():
        raise error(
            f"{path} is a link to a folder that does not exist; remove it or choose another name"
        )
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
    if foreign := _foreign_file(path, _OUTPUT_FOLDERS[marker]):
        raise error(
            f"{path} has files that are not of a {kind}, such as {foreign}; move them or choose"
            " another name"
        )


def _foreign_file(folder: Path, patterns: Sequence[str]) -> str | None:
    """Return a file, or an empty folder, that matches none of the patterns; None if there is none.

    A pattern without a slash is for names in the folder itself and in the folders of a pipeline's
    parts.
    """
    of_paths = [pattern for pattern in patterns if "/" in pattern]
    of_names = [pattern for pattern in patterns if "/" not in pattern]
    for path in sorted(folder.rglob("*")):
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and any(path.iterdir()):
            continue
        name = path.relative_to(folder).as_posix()
        parent = path.parent.relative_to(folder).as_posix()
        is_own = any(fnmatch(name, pattern) for pattern in of_paths)
        if is_folder:  # sentence-transformers makes empty folders for modules without files
            is_own = is_own or _PART.fullmatch(name) is not None
        elif parent == "." or _PART.fullmatch(parent):
            is_own = is_own or any(fnmatch(path.name, pattern) for pattern in of_names)
        if not is_own:
            return one_line(name)
    return None


def digest(*parts: Any) -> str:
    """Return 16 hexadecimal digits that distinguish JSON values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def file_digest(path: str | Path) -> str:
    """Identify a file by absolute path, size and modification time; a pipe gets a new digest each
    time.
    """
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
def output_lock(
    output: Path, check: Callable[[], None] | None = None, wait: bool = False
) -> Iterator[None]:
    """Lock an output, a file or a folder, for this run; the lock ends with the process, however it
    ends.

    Leftovers of killed runs are removed first. The thread that has the lock may take it again.
    `check` may refuse the output. It runs before anything is touched, and again under the lock,
    since another run may have written meanwhile.
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
                # under the lock: filelock ignores a file that is no longer there
                path.unlink(missing_ok=True)


@contextmanager
def output_files(*paths: Path | None, overwrite: bool) -> Iterator[None]:
    """Lock output files for this run, see `output_lock` and `check_output`; None stands for a file
    that is not made.
    """
    check_different([path for path in paths if path is not None])
    with ExitStack() as stack:
        for path in paths:
            if path is not None:
                stack.enter_context(output_lock(path, partial(check_output, path, overwrite)))
        yield


@contextmanager
def _held(path: Path, wait: bool, refusal: str, reentrant: bool) -> Iterator[bool]:
    """Hold a lock; yield whether it was taken now: False if this thread has it already, or locks do
    not work here.
    """
    from filelock import FileLock, Timeout

    if path.is_symlink() or (path.exists() and not _is_lock(path)):
        raise ParagramError(
            f"{path} exists and is not a lock of st_paragram; move it, or choose another name"
        )
    lock = FileLock(path, timeout=0, is_singleton=reentrant)
    outermost = not lock.is_locked
    try:
        try:
            lock.acquire()
        except Timeout as error:
            if not wait:
                raise InUseError(refusal) from error
            logger.warning("waiting for another run: %s", refusal.partition(";")[0])
            lock.acquire(timeout=-1)
    except PermissionError:
        raise
    # on a file system without locks, nothing prevents a second run
    except (NotImplementedError, OSError):
        outermost = False
    try:
        yield outermost
    finally:
        lock.release()


def _is_lock(path: Path) -> bool:
    """Whether a file may be a lock: empty, or with a process id where the file system has no locks."""
    return path.is_file() and (
        not path.stat().st_size or path.read_bytes().split(b"\n")[0].isdigit()
    )


@dataclass(frozen=True)
class FileDescription:
    """A file's size in bytes, and the SHA-256 of its content in hexadecimal digits."""

    size: int
    sha256: str


def describe_files(path: Path) -> dict[str, FileDescription]:
    """Describe a file by its name, or all files of a folder by their paths within it."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    root = path.parent if path.is_file() else path
    return {
        str(file.relative_to(root)): FileDescription(file.stat().st_size, content_digest(file))
        for file in files
    }
