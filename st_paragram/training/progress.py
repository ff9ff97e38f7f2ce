"""What a training run leaves in its folder of checkpoints, so that it can be resumed, and only as it was begun."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.data.pair_store import SIDES, PairStore
from st_paragram.errors import SettingsError
from st_paragram.files import digest, write_json

_FILE = "progress.json"
_FILE_LIST = "files.json"
_MAY_CHANGE = ("device", "evaluate_steps")


@dataclass
class Progress:
    """Settings and data of a training run, and the time it has taken so far, over all its parts.

    Args:
        settings: of the run.
        store: a digest of what the store (or all stores) of the run holds.
        seconds: of wall time.
        step_seconds: of the steps alone, without evaluation and checkpoints.
        pairs: of those steps.
    """

    settings: Mapping[str, Any]
    store: str
    seconds: float = 0.0
    step_seconds: float = 0.0
    pairs: int = 0

    def write(self, folder: Path) -> None:
        """Write into `folder`."""
        write_json(folder / _FILE, vars(self))


def begin(folder: Path, settings: Mapping[str, Any], *stores: PairStore) -> Progress:
    """Begin a training run in `folder`.

    Raises:
        SettingsError: an earlier run has left checkpoints there.
    """
    if newest := newest_checkpoint(folder):
        raise SettingsError(f"{newest}: left by an earlier training run; resume it with --resume, or remove {folder}")
    progress = Progress(settings, _identity(stores))
    progress.write(folder)
    return progress


def resume(folder: Path, settings: Mapping[str, Any], *stores: PairStore) -> tuple[Progress, Path]:
    """Find the newest whole checkpoint in `folder`, and the progress that had been made.

    Raises:
        SettingsError: there is none, or it belongs to other settings or data.
    """
    checkpoint = newest_checkpoint(folder)
    if checkpoint is None:
        raise SettingsError(f"{folder}: no checkpoint to resume from; train without --resume")
    try:
        progress = Progress(**json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"{folder / _FILE}: not readable ({error}); remove {folder} and train again") from error
    for name, value in settings.items():
        if name not in _MAY_CHANGE and progress.settings.get(name) != value:
            was = progress.settings.get(name)
            raise SettingsError(f"{folder}: begun with {name} {was}, not {value}; resume with the same settings")
    if progress.store != _identity(stores):
        names = ", ".join(str(store.path) for store in stores)
        raise SettingsError(f"{folder}: begun on other data than {names}; resume with the same data")
    return progress, checkpoint


def list_files(checkpoint: Path, to_come: Sequence[str] = ()) -> None:
    """Write down which files make a checkpoint whole: those that are there, and those that are still to come."""
    there = [path.relative_to(checkpoint).as_posix() for path in sorted(checkpoint.rglob("*")) if path.is_file()]
    write_json(checkpoint / _FILE_LIST, sorted({*there, *to_come} - {_FILE_LIST}))


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of the most steps that has all of its files, or None."""
    whole = [path for path in folder.glob("checkpoint-*") if _is_whole(path)]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _is_whole(checkpoint: Path) -> bool:
    try:
        names = json.loads((checkpoint / _FILE_LIST).read_text(encoding="utf-8"))
        return all((checkpoint / name).is_file() for name in names)
    except (OSError, ValueError, TypeError):
        return False


def _identity(stores: Sequence[PairStore]) -> str:
    """A digest of what stores hold, their ids left out (their number and the tokenizers stand for them)."""
    parts = [
        [len(store), store.path.stat().st_size, store.languages, store.seed, store.settings, _tokenizers(store)]
        for store in stores
    ]
    return digest(*parts)


def _tokenizers(store: PairStore) -> list[Any]:
    tokenizers = [store.tokenizer(side=side) for side in SIDES]
    return [[one.kind, hashlib.sha256(one.content).hexdigest(), one.options] for one in tokenizers]
