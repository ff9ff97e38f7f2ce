"""Outputs: early checks, and locks against concurrent runs."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from st_paragram.core.files import (
    folder_for_file,
    is_pipe,
    missing_folder,
    not_writable,
)
from st_paragram.core.folders import remove_unfinished
from st_paragram.errors import InUseError, ParagramError, one_line

logger = logging.getLogger(__name__)

# folder of a part of a pipeline
_PART = re.compile(r"((\w+_)?\d+_\w+|language-\w+|decoders)(/.*)?")
#: Files of each kind of output folder, by the file or folder that marks the kind. A pattern without
#: a slash is for names in the folder itself and in the folders of a pipeline's parts.
_OUTPUT_FOLDERS = {
    "st_paragram.json": (
        "st_paragram.json",
        "training.json",
        "modules.json",
        "*config.json",
        "config_sentence_transformers.json",
        "*.safetensors",
        "*.index.json",
        "*.model",
        "tokenizer.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
        "*.jinja",
        "README.md",
        ".gitattributes",
    ),
    "embeddings.json": ("embeddings.json", "shard-*.npy"),
    "sentences.lance": ("sentences.lance/*", "in-use.lock"),
}


def check_output(path: Path, overwrite: bool) -> None:
    """Refuse an unusable output file before any work is done for it."""
    check_place(path, "file", ParagramError)
    if not path.exists():
        return
    if not path.is_file():
        problem = folder_for_file(path) or f"{path} is not a regular file"
        raise ParagramError(f"{problem}; name a file")
    if not overwrite:
        raise ParagramError(f"{path} exists; choose another name or give --overwrite")


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
    path: Path,
    overwrite: bool,
    marker: str,
    kind: str,
    error: type[ParagramError] = ParagramError,
    create_parents: bool = False,
) -> None:
    """Refuse an unusable output folder before any work is done for it.

    Only a folder with the `marker` is replaced, and only if all its files are those of such a
    folder. `create_parents` as in `check_place`.
    """
    if not path.name or path.name == "..":
        raise error(f"{path}: the folder cannot be created; choose another place")
    check_place(path, "folder", error, create_parents)
    if not path.exists():
        return
    if not path.is_dir():
        raise error(f"{path} is a file, but a folder is expected; choose another name")
    if not (path / marker).exists():
        raise error(f"{path} exists and is not a {kind}; choose another name")
    if not overwrite:
        raise error(f"{path} exists; choose another name or give --overwrite")
    foreign = _foreign_file(path, _OUTPUT_FOLDERS[marker])
    if foreign is not None:
        raise error(
            f"{path} has files that are not of a {kind}, such as {foreign}; move them or choose"
            " another name"
        )


def check_place(
    path: Path, kind: str, error: type[ParagramError], create_parents: bool = False
) -> None:
    """Refuse a place where no output can be created.

    Unless `create_parents`, at most one folder above the output may be missing: with more, the path
    is probably wrong.
    """
    if path.is_symlink() and not path.exists():
        raise error(
            f"{path} is a link to a {kind} that does not exist; remove it or choose another name"
        )
    refusal = not_writable(path)
    if not create_parents:
        refusal = refusal or missing_folder(path)
    if refusal:
        raise error(refusal)


def _foreign_file(folder: Path, patterns: Sequence[str]) -> str | None:
    """Return a file, or an empty folder, that matches none of the patterns; None if there is none.

    A pattern without a slash is for names in the folder itself and in the folders of a pipeline's
    parts.
    """
    paths = [pattern for pattern in patterns if "/" in pattern]
    names = [pattern for pattern in patterns if "/" not in pattern]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        parent = path.parent.relative_to(folder).as_posix()
        is_ours = _matches(name, paths)
        if path.is_dir() and not path.is_symlink():
            # sentence-transformers makes empty folders for modules without files
            if any(path.iterdir()) or _PART.fullmatch(name):
                is_ours = True
        elif parent == "." or _PART.fullmatch(parent):
            is_ours = is_ours or _matches(path.name, names)
        if not is_ours:
            return one_line(name)
    return None


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


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
    """Lock an output, a file or a folder, for this run; the lock ends with the process.

    Leftovers of killed runs are removed first. The thread that has the lock may take it again.
    `check` may refuse the output. It runs before anything is touched, and again under the lock,
    since another run may have written meanwhile.
    """
    if check is not None:
        check()
    output.parent.mkdir(parents=True, exist_ok=True)
    path = output.parent.resolve() / f".{output.name}.lock"
    refusal = f"another run is writing {output}; wait for it, or name another output"
    with _held(path, wait, refusal, reentrant=True) as is_outermost:
        if is_outermost:
            remove_unfinished(output.parent, output.name)
        try:
            if check is not None:
                check()
            yield
        finally:
            if is_outermost:
                # under the lock: filelock ignores a file that is no longer there
                path.unlink(missing_ok=True)


@contextmanager
def output_files(*paths: Path | None, overwrite: bool) -> Iterator[None]:
    """Lock output files for this run, see `output_lock` and `check_output`.

    None stands for a file that is not made.
    """
    files = [path for path in paths if path is not None]
    check_different(files)
    with ExitStack() as stack:
        for path in files:
            stack.enter_context(output_lock(path, partial(check_output, path, overwrite)))
        yield


@contextmanager
def _held(path: Path, wait: bool, refusal: str, *, reentrant: bool) -> Iterator[bool]:
    """Hold a lock; yield whether it was taken now.

    It was not if this thread has it already, or if locks do not work on this file system.
    """
    from filelock import FileLock, Timeout

    if path.is_symlink() or (path.exists() and not _is_lock(path)):
        raise ParagramError(
            f"{path} exists and is not a lock of st_paragram; move it, or choose another name"
        )
    lock = FileLock(path, timeout=0, is_singleton=reentrant)
    is_outermost = not lock.is_locked
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
        is_outermost = False
    try:
        yield is_outermost
    finally:
        lock.release()


def _is_lock(path: Path) -> bool:
    """Whether a file may be a lock: empty, or with a process id where locks do not work."""
    if not path.is_file():
        return False
    return path.stat().st_size == 0 or path.read_bytes().split(b"\n")[0].isdigit()
