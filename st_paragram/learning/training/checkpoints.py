"""The checkpoints of a run's folder, `checkpoint-<number of steps>`. Nothing here needs torch."""

from __future__ import annotations

from pathlib import Path

from st_paragram.errors import SettingsError

#: Written last, so that a checkpoint with this file is complete; it records data, settings and time so far.
COMPLETE = "complete.json"


def complete_checkpoints(folder: str | Path) -> list[Path]:
    """Return the complete checkpoints of a folder, in the order of their steps."""
    found = {path.parent.name.removeprefix("checkpoint-"): path.parent for path in Path(folder).glob(f"*/{COMPLETE}")}
    return [found[number] for number in sorted(filter(str.isdecimal, found), key=int)]


def newest_checkpoint(folder: str | Path) -> Path:
    """Return the complete checkpoint with the most steps; raise `SettingsError` if there is none."""
    if not (complete := complete_checkpoints(folder)):
        raise SettingsError(f"{folder}: no complete checkpoint to resume from; train without --resume")
    return complete[-1]
