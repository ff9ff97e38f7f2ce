"""What a training run leaves in its folder of checkpoints, so that it can be resumed, and only as it was begun."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.files import read_json, write_json
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import DAMAGED, SettingsError, one_line
from st_paragram.learning.training import checkpoints

_FILE = "progress.json"
_MAY_CHANGE = ("device", "evaluate_steps")


@dataclass
class Progress:
    """Settings and data of a training run, and the time it has taken so far, over all its parts.

    Args:
        settings: of the run.
        contents: of the stores of the run, the digest and the number of rows of each.
        seconds: of wall time.
        step_seconds: of the steps alone, without evaluation and checkpoints.
        pairs: of those steps.
    """

    settings: Mapping[str, Any]
    contents: list[list[Any]]
    seconds: float = 0.0
    step_seconds: float = 0.0
    pairs: int = 0

    def write(self, folder: Path) -> None:
        """Write into `folder`."""
        write_json(folder / _FILE, vars(self))


def values_of(settings: Any) -> dict[str, Any]:  # noqa: ANN401 - settings of any family
    """Settings by name; those that are `later` than others only where they are not at their defaults."""
    values, later = asdict(settings), getattr(settings, "later", ())
    usual = asdict(type(settings)()) if later else {}
    return {name: value for name, value in values.items() if name not in later or value != usual[name]}


def refuse_left(folder: Path) -> None:
    """Refuse to begin where another run can be resumed.

    Raises:
        SettingsError: an earlier run has left checkpoints there.
    """
    if left := checkpoints.finished(folder):
        raise SettingsError(f"{left[0]}: left by an earlier training run; resume it with --resume, or remove {folder}")


def begin(folder: Path, settings: Mapping[str, Any], *stores: PairStore) -> Progress:
    """Begin a training run in `folder`.

    Raises:
        SettingsError: an earlier run has left checkpoints there.
    """
    refuse_left(folder)
    progress = Progress(settings, _contents(stores))
    progress.write(folder)
    return progress


def resume(folder: Path, settings: Mapping[str, Any], *stores: PairStore) -> Progress:
    """Find the progress that had been made in `folder`; the trainer finds the checkpoint.

    Raises:
        SettingsError: there is none, or it belongs to other settings or data.
    """
    if not checkpoints.numbered(folder):
        raise SettingsError(f"{folder}: no checkpoint to resume from; train without --resume")
    return read(folder, settings, *stores)


def read(folder: Path, settings: Mapping[str, Any], *stores: PairStore) -> Progress:
    """The progress of a run that was begun, or finished, with these settings on these stores.

    Raises:
        SettingsError: there is none, or it belongs to other settings or data.
    """
    progress = _read(folder)
    for name in {**settings, **progress.settings}:
        was, value = progress.settings.get(name), settings.get(name)
        if name not in _MAY_CHANGE and was != value:
            raise SettingsError(f"{folder}: begun with {name} {was}, not {value}; resume with the same settings")
    if progress.contents != _contents(stores):
        names = ", ".join(str(store.path) for store in stores)
        raise SettingsError(f"{folder}: begun on other data than {names}; resume with the same data")
    return progress


def _read(folder: Path) -> Progress:
    try:
        progress = Progress(**read_json(folder / _FILE))
        progress.settings.keys()
        if not all(math.isfinite(number) for number in (progress.seconds, progress.step_seconds, progress.pairs)):
            raise ValueError("times that are not numbers")
    except DAMAGED as error:
        seen = f"not readable, or written by another version ({one_line(error)})"
        raise SettingsError(f"{folder / _FILE}: {seen}; remove {folder} and train again") from error
    return progress


def _contents(stores: tuple[PairStore, ...]) -> list[list[Any]]:
    """What is written of stores, as JSON gives it back."""
    return [[store.digest, len(store)] for store in stores]
