"""The checkpoints of a run's folder, `checkpoint-<number of steps>`. Nothing here needs torch.

Only our own checkpoints are removed: those that are complete, and unfinished checkpoints in a
folder that a run has created, which `MARKER` shows. Everything else belongs to the user.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from st_paragram.core.files import file_for_folder, read_json
from st_paragram.core.folders import MARKER, is_own_folder, make_own_folder
from st_paragram.errors import SettingsError, refused

#: The last file of a checkpoint to be written; it records data, settings and time so far.
COMPLETE = "complete.json"
_MAY_CHANGE = ("device", "evaluate_steps")


def complete_checkpoints(folder: str | Path) -> list[Path]:
    """Return the complete checkpoints of a folder, in the order of their steps."""
    checkpoints = [path for path in _numbered(folder) if (path / COMPLETE).exists()]
    return sorted(checkpoints, key=lambda path: int(path.name.removeprefix("checkpoint-")))


def _numbered(folder: str | Path) -> list[Path]:
    paths = Path(folder).glob("checkpoint-*")
    return [path for path in paths if re.fullmatch(r"checkpoint-\d+", path.name)]


def newest_checkpoint(folder: str | Path) -> Path:
    """Return the complete checkpoint with the most steps; refuse a folder without one."""
    checkpoints = complete_checkpoints(folder)
    if not checkpoints:
        raise SettingsError(
            f"{folder}: no complete checkpoint to resume from; train without --resume"
        )
    return checkpoints[-1]


def check_settings(checkpoint: Path, settings: Mapping[str, Any]) -> None:
    """Refuse to resume a complete checkpoint with other settings than those of its run."""
    with refused(SettingsError, str(checkpoint), "cannot be resumed from", "train again"):
        before = read_json(checkpoint / COMPLETE)["settings"]
        names = [*{**before, **settings}]
    for name in names:
        if name not in _MAY_CHANGE and before.get(name) != settings.get(name):
            raise SettingsError(
                f"{checkpoint}: started with {name} {before.get(name)}, not {settings.get(name)};"
                " resume with the same"
            )


def check_folder(folder: Path) -> None:
    """Refuse a folder for a new run that has complete checkpoints or files of the user."""
    if wrong := file_for_folder(folder, "a folder for checkpoints"):
        raise SettingsError(f"{wrong}; rename it, or choose another output")
    if checkpoints := complete_checkpoints(folder):
        raise SettingsError(
            f"{checkpoints[-1]}: left by an earlier training run; resume it with --resume, or"
            f" remove {folder}"
        )
    if folder.is_dir() and any(folder.iterdir()) and not is_own_folder(folder):
        raise SettingsError(
            f"{folder} exists, but a training run has not created it; rename it, or choose another"
            " output, since checkpoints go there"
        )


def create_folder(folder: Path) -> None:
    """Create and mark a folder for checkpoints, unless it exists."""
    if not folder.exists():
        make_own_folder(folder)


def remove_checkpoints(folder: Path) -> None:
    """Remove our checkpoints, and the folder if a run has created it and nothing else is there."""
    is_created = is_own_folder(folder)
    for checkpoint in _numbered(folder) if is_created else complete_checkpoints(folder):
        shutil.rmtree(checkpoint, ignore_errors=True)
    with suppress(OSError):  # only if it is empty, as sentence-transformers leaves it
        (folder / "eval").rmdir()
    if is_created:
        (folder / MARKER).unlink(missing_ok=True)
        with suppress(OSError):  # not empty: other files stay
            folder.rmdir()


def remove_old_checkpoints(folder: Path, limit: int | None, best: str | None) -> None:
    """Remove the oldest complete checkpoints until `limit` are left, but not the newest or best.

    The age is the modification time: if a run was resumed at an earlier step, old checkpoints may
    have later steps.
    """
    if not limit:
        return
    by_age = sorted(
        complete_checkpoints(folder), key=lambda path: (path / COMPLETE).stat().st_mtime_ns
    )
    surplus = max(len(by_age) - limit, 0)
    removable = [path for path in by_age[:-1] if best is None or path != Path(best)]
    for checkpoint in removable[:surplus]:
        shutil.rmtree(checkpoint, ignore_errors=True)
