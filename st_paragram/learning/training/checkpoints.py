"""Which checkpoints a folder has, which of them are whole, and how to report a damaged one in one line.

A checkpoint is a folder `checkpoint-<number of steps>`. Its `files.json`, which is written last, names all other files
with their sizes and SHA-256, and the stores of the run with the digests of their contents: a checkpoint is whole if
every file is what is written there. Folders of other names are nobody's business here.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from st_paragram.core.files import FileDescription, content_digest, read_json, write_json
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import DAMAGED, ParagramError, SettingsError, one_line

logger = logging.getLogger(__name__)

FILE_LIST = "files.json"
OPTIMIZER, SCHEDULER = "optimizer.pt", "scheduler.pt"
RANDOM_STATE, TRAINER_STATE = "rng_state.pth", "trainer_state.json"
_NEEDED = {OPTIMIZER, SCHEDULER, RANDOM_STATE, TRAINER_STATE}
_NAME = re.compile(r"checkpoint-(0|[1-9][0-9]{0,17})")

#: What stores hold, by the names that the run gives them: the digest of the content, and how many rows are used.
StoreContents = Mapping[str, tuple[str, int]]


@dataclass(frozen=True)
class FileList:
    """What `files.json` says: what the stores of the run hold, and all other files by their paths in the folder."""

    stores: StoreContents
    files: Mapping[str, FileDescription]


def contents_of(stores: Mapping[str, PairStore]) -> StoreContents:
    """What stores hold."""
    return {name: (store.digest, len(store)) for name, store in stores.items()}


def seal(checkpoint: Path, stores: StoreContents) -> None:
    """Write `files.json` for all files that are there: the checkpoint is whole then."""
    paths = [path for path in sorted(checkpoint.rglob("*")) if path.is_file() and path != checkpoint / FILE_LIST]
    files = {
        path.relative_to(checkpoint).as_posix(): asdict(FileDescription(path.stat().st_size, sha256))
        for path, sha256 in zip(paths, map(content_digest, paths), strict=True)
    }
    write_json(checkpoint / FILE_LIST, {"stores": stores, "files": files})


def whole(checkpoint: Path) -> tuple[Path, FileList]:
    """Compare every file of a checkpoint with `files.json`; returns the checkpoint and that list.

    Raises:
        SettingsError: it is not whole; says why.
    """
    try:
        return checkpoint, _checked(checkpoint)
    except DAMAGED as error:
        raise SettingsError(f"{checkpoint}: {_not_whole(error)}; resume from another checkpoint") from error


def newest_whole(folder: Path) -> tuple[Path, FileList]:
    """The whole checkpoint of the most steps, as `whole` gives it; a warning names those that are passed over.

    Raises:
        SettingsError: there is none.
    """
    for path in numbered(folder):
        try:
            return path, _checked(path)
        except DAMAGED as error:
            logger.warning("WARNING: %s: %s; skipped", path, _not_whole(error))
    seen = "no complete checkpoint to resume from"
    raise SettingsError(f"{folder}: {seen}; remove this folder, and train without --resume")


def _checked(checkpoint: Path) -> FileList:
    written = _file_list(checkpoint)
    paths = {name: checkpoint / name for name in written.files}
    for name, path in paths.items():
        if not path.is_file():
            raise ValueError(f"{name} is missing")
        if (size := path.stat().st_size) != written.files[name].size:
            raise ValueError(f"{name} has {size:,} bytes, not {written.files[name].size:,}")
    for name, sha256 in zip(paths, map(content_digest, paths.values()), strict=True):
        if sha256 != written.files[name].sha256:
            raise ValueError(f"{name} is damaged, its SHA-256 is not the one in {FILE_LIST}")
    return written


def _file_list(checkpoint: Path) -> FileList:
    if not (checkpoint / FILE_LIST).is_file():
        raise ValueError(f"{FILE_LIST}, which is written last, is missing")
    values = read_json(checkpoint / FILE_LIST)
    files = {name: FileDescription(**described) for name, described in values["files"].items()}
    if any(PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts for name in files):
        raise ValueError(f"{FILE_LIST} names files of other folders")
    if missing := sorted(_NEEDED - files.keys()):
        raise ValueError(f"{FILE_LIST} does not name {missing[0]}")
    stores = {name: (str(sha256), int(pairs)) for name, (sha256, pairs) in values["stores"].items()}
    return FileList(stores, files)


def numbered(folder: Path) -> list[Path]:
    """All checkpoints of a folder, whole or not, that of the most steps first."""
    found = [path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=_step, reverse=True)


def finished(folder: Path) -> list[Path]:
    """The checkpoints of a folder that were written to the end, whatever has become of them since."""
    return [path for path in numbered(folder) if (path / FILE_LIST).exists()]


def forget_old(newest: Path, keep: int | None, best: str | None) -> None:
    """Remove checkpoints except the newest.

    Those of more steps go first: they were passed over when the run was resumed.

    Args:
        newest: the one just written, which stays.
        keep: how many to keep, it included; None or 0 keeps all.
        best: one that stays, too.
    """
    if not keep:
        return
    stay = {newest.resolve()} | ({Path(best).resolve()} if best else set())
    found = numbered(newest.parent)
    old = [path for path in found if path.resolve() not in stay]
    old.sort(key=lambda path: (_step(path) < _step(newest), _step(path)))
    for path in old[: max(0, len(found) - max(keep, len(stay)))]:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def reading(checkpoint: str | Path) -> Iterator[None]:
    """Tell in one line what is raised while something of a checkpoint is read, and of which.

    Raises:
        ParagramError: one that names the checkpoint.
        SettingsError: whatever else is raised in the block.
    """
    try:
        yield
    except ParagramError as error:
        if str(checkpoint) in str(error):
            raise
        raise SettingsError(f"{checkpoint}: {error}") from error
    except Exception as error:  # torch reads archives and pickles, transformers sets what it finds: anything is raised
        seen = f"cannot be resumed from ({one_line(error)})"
        raise SettingsError(f"{checkpoint}: {seen}; resume from another checkpoint, or train again") from error


def _not_whole(error: BaseException) -> str:
    return f"not a whole checkpoint ({one_line(error)})"


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])
