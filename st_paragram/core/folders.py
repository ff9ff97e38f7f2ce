"""Folders of this package: the cache, and folders that it makes and may remove.

Only three kinds of files and folders are ever removed: folders with the file `MARKER`, which this
package made; hidden names with 12 random digits, which `core.files.atomic` and `temporary_folder`
choose; and the empty files that serve as locks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from st_paragram.core.files import UNFINISHED, naming_full_disk, not_writable, unfinished_name
from st_paragram.errors import ParagramError

CACHE_VARIABLE = "ST_PARAGRAM_CACHE"  # names the folder for everything that is not a named output
MARKER = ".made-by-st_paragram"  # a file in each folder that this package made and may remove
_MARK = b"st_paragram made this folder and will remove it. Keep no files of yours here.\n"
_OLD = "old"  # name of a folder while it is being replaced


def cache_folder() -> Path:
    """Return `$ST_PARAGRAM_CACHE`, or `$XDG_CACHE_HOME/st_paragram`, or `~/.cache/st_paragram`."""
    try:
        named = os.environ.get(CACHE_VARIABLE)
        if named:
            return Path(named).expanduser().absolute()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "st_paragram"
    except RuntimeError as error:  # as in a container, for a user without an entry in /etc/passwd
        raise ParagramError(
            f"no cache folder: this user has no home folder; set {CACHE_VARIABLE}"
        ) from error


def writable_cache(folder: str = "") -> Path:
    """Return the cache, or a folder in it, if it can be written; nothing is created yet."""
    path = cache_folder() / folder
    if not_writable(path / "file"):
        raise ParagramError(
            f"{path}: the cache is not writable; set {CACHE_VARIABLE} to a writable folder"
        )
    return path


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a path for a new folder that takes its name only when the block ends without an error.

    A folder of that name is replaced. If the process is killed meanwhile, `output_lock` restores
    the old folder.
    """
    with temporary_folder(path) as folder:
        new = folder / "new"
        old = folder / _OLD
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
    folder = unfinished_name(output)
    folder.mkdir(parents=True)
    try:
        with naming_full_disk(output):
            (folder / MARKER).write_bytes(_MARK)
            yield folder
    finally:
        _remove(folder)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder for temporary files in `$TMPDIR` or the system's folder for them."""
    with TemporaryDirectory(prefix="st-paragram-") as name:
        path = Path(name)
        with naming_full_disk(path.parent):
            yield path


def is_own_folder(path: Path) -> bool:
    """Whether this package made a folder, so that it may remove it; never true for a link."""
    try:
        return not path.is_symlink() and (path / MARKER).read_bytes() == _MARK
    except OSError:
        return False


def check_own_folder(path: Path) -> None:
    """Refuse a path at which `make_own_folder` cannot make a folder because of other files."""
    if not is_own_folder(path) and (path.exists() or path.is_symlink()):
        raise ParagramError(
            f"{path} exists, and this version of st_paragram did not make it; move it elsewhere"
        )


def make_own_folder(path: Path) -> None:
    """Create a folder that this package may remove, or accept such a folder of an earlier run."""
    check_own_folder(path)
    if is_own_folder(path):
        return
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
            path = path.rename(unfinished_name(path))
        _remove(path)


def _remove(folder: Path) -> None:
    """Remove a folder of ours, the marker last."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != MARKER:
                path.unlink()
        if _is_empty(folder):
            (folder / MARKER).unlink(missing_ok=True)
            folder.rmdir()


def _is_empty(folder: Path) -> bool:
    """Whether a folder has no file except a marker."""
    return all(path.name == MARKER for path in folder.iterdir())


def remove_unfinished(folder: Path, name: str | None = None) -> None:
    """Remove leftovers of killed runs in a folder, for one output or for all.

    No other run may be writing there.
    """
    for path in list(folder.glob(".*.part")):
        match = UNFINISHED.fullmatch(path.name)
        if match is None or name not in (None, match[1]) or path.is_symlink():
            continue
        if path.is_dir():
            _bring_back(path / _OLD, folder / match[1])
        with suppress(OSError):  # another user's
            if not path.is_dir():
                path.unlink()
            elif is_own_folder(path) or _is_empty(path):  # empty if killed before it had a marker
                _remove(path)


def _bring_back(old: Path, path: Path) -> None:
    if old.exists() and not path.exists():
        old.rename(path)


def size(folder: Path) -> int:
    """Return the total size of a folder's files in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
