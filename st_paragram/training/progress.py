"""What a training leaves in its folder of checkpoints, so that it can be resumed, and only as it was begun."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.data.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.files import write_json
from st_paragram.training.mega_batch import mega_batch

_FILE = "training.json"
_COMPLETE = (
    "model.safetensors",
    "optimizer.pt",
    "scheduler.pt",
    "rng_state.pth",
    "trainer_state.json",
    mega_batch.FILE,
)
_MAY_CHANGE = ("device", "evaluate_steps")


@dataclass
class Progress:
    """Settings and data of a training, and the time it has taken so far, in seconds, all runs together.

    `step_seconds` leaves out evaluation and checkpoints; `pairs` are those of the steps.
    """

    settings: Mapping[str, Any]
    store: str
    seconds: float = 0.0
    step_seconds: float = 0.0
    pairs: int = 0

    def write(self, folder: Path) -> None:
        """Write into `folder`."""
        write_json(folder / _FILE, vars(self))


def begin(folder: Path, settings: Mapping[str, Any], store: PairStore) -> Progress:
    """Begin a training in `folder`.

    Raises:
        SettingsError: an earlier training has left checkpoints there.
    """
    if newest := newest_checkpoint(folder):
        raise SettingsError(f"{newest}: left by an earlier training; go on with --resume, or remove {folder}")
    progress = Progress(settings, _identity(store))
    progress.write(folder)
    return progress


def resume(folder: Path, settings: Mapping[str, Any], store: PairStore) -> tuple[Progress, Path]:
    """Find the newest whole checkpoint in `folder`, and what was known when it was left.

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
    if progress.store != _identity(store):
        raise SettingsError(f"{folder}: begun on other data than {store.path}; resume with the same data")
    return progress, checkpoint


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of the most steps that has all of its files, or None."""
    whole = [path for path in folder.glob("checkpoint-*") if all((path / name).is_file() for name in _COMPLETE)]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _identity(store: PairStore) -> str:
    """A digest of what a store holds, its ids left out (their number and the vocabulary stand for them)."""
    facts = [len(store), store.path.stat().st_size, store.languages, store.seed, store.settings]
    text = json.dumps(facts, sort_keys=True).encode() + store.tokenizer().model_proto
    return hashlib.sha256(text).hexdigest()
