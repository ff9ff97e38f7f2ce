"""The checkpoints of a run's folder, `checkpoint-<number of steps>`. Nothing here needs torch.

Only our own checkpoints are removed: those that are complete, and unfinished ones in a folder that
a run has created, which `MARKER` shows. Everything else in a folder of checkpoints belongs to the
user.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

from st_paragram.core.files import file_for_folder
from st_paragram.core.folders import MARKER, is_own_folder, make_own_folder
from st_paragram.errors import SettingsError

#: Written last, so that a checkpoint with this file is complete; it records data, settings and time
#: so far.
COMPLETE = "complete.json"


def complete_checkpoints(folder: str | Path) -> list[Path]:
    """Return the complete checkpoints of a folder, in the order of their steps."""
    found = {
        path.parent.name.removeprefix("checkpoint-"): path.parent
        for path in Path(folder).glob(f"*/{COMPLETE}")
    }
    return [found[number] for number in sorted(filter(str.isdecimal, found), key=int)]


def newest_checkpoint(folder: str | Path) -> Path:
    """Return the complete checkpoint with the most steps; raise `SettingsError` if there is none."""
    if not (complete := complete_checkpoints(folder)):
        raise SettingsError(
            f"{folder}: no complete checkpoint to resume from; train without --resume"
        )
    return complete[-1]


def check_folder(folder: Path) -> None:
    """Refuse a folder for a new run's checkpoints if it has complete checkpoints or files of the
    user.
    """
    if wrong := file_for_folder(folder, "a folder for checkpoints"):
        raise SettingsError(f"{wrong}; rename it, or choose another output")
    if complete := complete_checkpoints(folder):
        seen = f"{complete[-1]}: left by an earlier training run"
        raise SettingsError(f"{seen}; resume it with --resume, or remove {folder}")
    if folder.is_dir() and any(folder.iterdir()) and not is_own_folder(folder):
        seen = f"{folder} exists, but a training run has not created it"
        raise SettingsError(
            f"{seen}; rename it, or choose another output, since checkpoints go there"
        )


def create_folder(folder: Path) -> None:
    """Create and mark a folder for checkpoints, unless it exists."""
    if not folder.exists():
        make_own_folder(folder)


def remove_checkpoints(folder: Path) -> None:
    """Remove our checkpoints, and the folder itself if a run has created it and nothing else is
    there.
    """
    ours = complete_checkpoints(folder)
    is_created = is_own_folder(folder)
    if is_created:
        numbered = (
            path
            for path in folder.glob("checkpoint-*")
            if re.fullmatch(r"checkpoint-\d+", path.name)
        )
        ours += [path for path in numbered if path not in ours]
    for checkpoint in ours:
        shutil.rmtree(checkpoint, ignore_errors=True)
    with suppress(OSError):  # only if it is empty, as sentence-transformers leaves it
        (folder / "eval").rmdir()
    if is_created:
        (folder / MARKER).unlink(missing_ok=True)
        with suppress(OSError):  # not empty: other files stay
            folder.rmdir()


def remove_old_checkpoints(folder: Path, limit: int | None, best: str | None) -> None:
    """Remove the oldest complete checkpoints, so that `limit` are left; the newest and the best
    always stay.

    The age is the modification time: if a run was resumed at an earlier step, old checkpoints may
    have later steps.
    """
    by_age = sorted(
        complete_checkpoints(folder), key=lambda path: (path / COMPLETE).stat().st_mtime_ns
    )
    surplus = len(by_age) - limit if limit else 0
    removable = [path for path in by_age[:-1] if best is None or path != Path(best)]
    for checkpoint in removable[: max(surplus, 0)]:
        shutil.rmtree(checkpoint, ignore_errors=True)
