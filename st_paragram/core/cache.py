"""What the cache folder holds, and how it is cleared.

Only files whose names this package gives are looked at: the folder may have others. Links are neither followed nor
removed.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from st_paragram.core.files import cache_folder, locked, size
from st_paragram.errors import ParagramError

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

#: Kinds of files, see `st-paragram cache --help`.
KINDS = ("stores", "tasks", "built-in", "unfinished", "digests", "lid", "models")
#: Kinds that are made again when they are needed, and are cleared if none is named. Models are never cleared.
REMADE = KINDS[:5]

_NAMES = {
    "stores": r"stores/[^/.][^/]*-[0-9a-f]{16}\.h5",
    "tasks": r"tasks/[^/.]+/[^/.][^/]*-[0-9a-f]{16}(\.contexts)?\.h5",
    "built-in": r"built-in-[0-9]+\.en-[a-z]+\.tsv",
    "unfinished": r"(stores|tasks/[^/.]+)/\.[^/]+(\.work|\.[0-9a-f]{12}\.part)",
    "digests": r"(store-digests|models|embeddings)/[0-9a-f]{16}",
    "lid": r"lid/lid\.176\.(bin|ftz)",
    "models": r"[^/.][^/]*",
}
_FOLDERS = ("", "stores", "tasks", "lid", "store-digests", "models", "embeddings")
_in_use: dict[Path, IO[bytes]] = {}


@dataclass(frozen=True)
class CacheEntry:
    """A file or folder of the cache.

    Attributes:
        kind: One of `KINDS`.
        path: Where it is.
        size: In bytes.
        used: When it was last read or written, as far as the file system keeps that; seconds since 1970.
    """

    kind: str
    path: Path
    size: int
    used: float

    def made_from(self) -> str:
        """The texts that a store was prepared from; empty where that is not known."""
        if self.kind == "tasks":
            return f"{self.path.parent.name}, {self.path.name.partition('-')[0]}"
        if self.kind != "stores":
            return ""
        try:
            from st_paragram.core.pair_store import PairStore

            report = PairStore(self.path, check_ids=False).settings["report"]
            return ", ".join(str(source["name"]) for source in report["sources"])
        except (ImportError, ParagramError, LookupError, TypeError):  # no h5py, or a damaged store
            return ""


def entries() -> list[CacheEntry]:
    """What is in the cache, by kind and name.

    Raises:
        ParagramError: No cache folder is known.
    """
    root = cache_folder()
    found = [_entry(kind, path) for path in _paths(root) if (kind := _kind(path, root)) is not None]
    return sorted((each for each in found if each), key=lambda each: (KINDS.index(each.kind), each.path))


def clear(entry: CacheEntry) -> bool:
    """Remove an entry of a kind other than "models", unless it is in use.

    Returns:
        Whether it was removed; False if another run makes or reads it.

    Raises:
        OSError: It cannot be removed.
    """
    with suppress(ParagramError, FileNotFoundError), _lock(entry):  # held by a run, or removed meanwhile
        if _kind(entry.path, cache_folder()) == entry.kind and not _is_read(entry.path):
            shutil.rmtree(entry.path) if entry.path.is_dir() else entry.path.unlink()
            return True
    return not os.path.lexists(entry.path)


def chosen(kinds: Collection[str] = REMADE, older_than: float = 0) -> list[CacheEntry]:
    """The entries to be cleared.

    Args:
        kinds: Their kinds.
        older_than: Days for which they were neither read nor written.

    Raises:
        ParagramError: No cache folder is known.
    """
    latest = time.time() - older_than * 86_400
    return [each for each in entries() if each.kind in kinds and (older_than <= 0 or each.used <= latest)]


def keep_in_use(path: Path) -> None:
    """Keep a file from being cleared until this process ends; does nothing where files cannot be locked."""
    if fcntl is not None and path not in _in_use:
        with suppress(OSError):
            file = path.open("rb")
            _in_use[path] = file
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _is_read(path: Path) -> bool:
    if fcntl is None or not path.is_file():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
    return False


def _lock(entry: CacheEntry) -> AbstractContextManager[None]:
    """The lock that a run holds while it makes or reads such an entry; other kinds are read in one go."""
    if entry.kind == "built-in":  # read while a store is built from it
        return locked(entry.path.parent / "stores")
    return locked(entry.path.parent) if entry.kind in ("stores", "tasks", "unfinished") else nullcontext()


def _paths(root: Path) -> Iterator[Path]:
    """Everything in those folders of the cache that this package fills; links to folders are left out."""
    tasks = root / "tasks"
    folders = [root / name for name in _FOLDERS]
    if tasks.is_dir() and not tasks.is_symlink():
        folders += sorted(tasks.iterdir())
    for folder in folders:
        if folder.is_dir() and (folder == root or not folder.is_symlink()):
            yield from folder.iterdir()


def _kind(path: Path, root: Path) -> str | None:
    """What a path in the cache is; None for a link, or what this package has not put there."""
    if path.is_symlink() or path.parent.resolve() != root.resolve() / path.parent.relative_to(root):
        return None
    name = path.relative_to(root).as_posix()
    kind = next((kind for kind, pattern in _NAMES.items() if re.fullmatch(pattern, name)), None)
    if kind == "models":
        return kind if (path / "st_paragram.json").is_file() else None
    return kind if kind == "unfinished" or path.is_file() else None


def _entry(kind: str, path: Path) -> CacheEntry | None:
    try:
        status = path.stat()
        return CacheEntry(kind, path, size(path) if path.is_dir() else status.st_size, max(status[7:9]))
    except FileNotFoundError:  # removed meanwhile
        return None
