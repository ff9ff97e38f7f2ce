"""The checkpoints of a run's folder, `checkpoint-<number of steps>`. Nothing here needs torch."""

from __future__ import annotations

from pathlib import Path

from st_paragram.errors import SettingsError

#: Written last, so that a checkpoint that has it is complete: what was trained on, how, and how long it took so far.
COMPLETE = "complete.json"


def complete_checkpoints(folder: str | Path) -> list[Path]:
    """The complete checkpoints of a folder, that of the most steps last."""
    found = {path.parent.name.removeprefix("checkpoint-"): path.parent for path in Path(folder).glob(f"*/{COMPLETE}")}
    return [found[number] for number in sorted(filter(str.isdecimal, found), key=int)]


def newest_checkpoint(folder: str | Path) -> Path:
    """The complete checkpoint of the most steps; a `SettingsError` where there is none."""
    if not (complete := complete_checkpoints(folder)):
        raise SettingsError(f"{folder}: no complete checkpoint to resume from; train without --resume")
    return complete[-1]
