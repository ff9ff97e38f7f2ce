"""Files: atomic writes, JSON, digests, and a full disk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

from st_paragram.errors import ParagramError, TextError, one_line

_Record = TypeVar("_Record")
STDIN = "-"  # stands for standard input in place of a file
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"  # first bytes of a pair store
NUMPY_SIGNATURE = b"\x93NUMPY"
UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part")
# a full disk, a used-up quota, a limit of the system
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Words in the errors of Rust, numpy and torch for a full disk.
_FULL_TEXT = re.compile(
    r"(?i)no space left|storagefull|\d+ requested and \d+ written|streamwriter failed"
    r" writing|unexpected pos \d+ vs \d+"
)


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name only when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = unfinished_name(path)
    try:
        with naming_full_disk(path):
            with part.open("wb") as handle:
                yield handle
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def unfinished_name(path: Path) -> Path:
    """Return an unused hidden name next to a path."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")


def is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, or an error that it was raised from, is that of a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if _FULL_TEXT.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Turn any error for a full disk into an `OSError` with a path: that of the error, or `path`.

    In place of an unfinished output, the error names the output.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ParagramError) or not is_full_disk(error):
            raise
        number = errno.ENOSPC
        if isinstance(error, OSError):
            path = Path(error.filename or path)
            if error.errno in _FULL:
                number = error.errno
        for place in (path, *path.parents):
            match = UNFINISHED.fullmatch(place.name)
            if match:
                path = place.with_name(match[1])
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
    """Read a dataclass from a JSON file with its fields.

    A `ValueError` of one line shows which value does not fit.
    """
    import pydantic  # slow to import, and many runs read no record

    try:
        return pydantic.TypeAdapter(kind).validate_json(Path(path).read_bytes(), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def is_hdf5(path: Path) -> bool:
    """Whether a file begins like a pair store."""
    with path.open("rb") as file:
        return file.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE


def file_for_folder(path: str | Path, folder: str = "a folder") -> str | None:
    """Return an error text if a path is a file where a folder is expected."""
    if Path(path).is_file():
        return f"{path} is a file, but {folder} is expected"
    return None


def folder_for_file(path: str | Path) -> str | None:
    """Return an error text if a path is a folder where a file is expected."""
    if Path(path).is_dir():
        return f"{path} is a folder, but a file is expected"
    return None


def not_writable(path: Path) -> str | None:
    """Return an error text if nothing can be created at a path; None if it can."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    advice = f"choose another place for {path.name}"
    if folder.is_file():
        return f"{file_for_folder(folder)}; {advice}"
    if not folder.is_dir():
        return f"{folder} is not writable; {advice}"
    try:
        with TemporaryFile(dir=folder):  # root has all permissions, also in /proc
            pass
    except OSError as error:
        return f"{folder} is not writable ({error.strerror}); {advice}"
    return None


def missing_folder(path: Path) -> str | None:
    """Return an error text if more than the last folder above a path is missing: a likely typo."""
    folder = path.parent
    if folder.exists() or folder.parent.exists():
        return None
    return f"{folder.parent}: no such folder; create it, or correct the path of {path.name}"


def digest(*parts: Any) -> str:
    """Return 16 hexadecimal digits that distinguish JSON values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def file_digest(path: str | Path) -> str:
    """Identify a file by absolute path, size and modification time; a pipe is always new."""
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
    """Return names as a list, also a single name, since a str is a sequence of letters."""
    if isinstance(names, str | Path):
        return [names]
    return list(names)


@dataclass(frozen=True)
class FileDescription:
    """A file's size in bytes, and the SHA-256 of its content in hexadecimal digits."""

    size: int
    sha256: str


def describe_files(path: Path) -> dict[str, FileDescription]:
    """Describe a file by its name, or all files of a folder by their paths within it."""
    root = path.parent if path.is_file() else path
    paths = [path] if path.is_file() else sorted(path.rglob("*"))
    descriptions = {}
    for file in paths:
        if file.is_file():
            name = str(file.relative_to(root))
            descriptions[name] = FileDescription(file.stat().st_size, content_digest(file))
    return descriptions
