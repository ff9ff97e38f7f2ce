"""Files of neighbours that were found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from st_paragram.core.damage import DAMAGED, one_line
from st_paragram.core.npy_files import read_npz
from st_paragram.errors import MiningError


def read_found(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays of an `.npz` file.

    Args:
        path: The file.
        names: Of its arrays, of similarities and rows.

    Raises:
        MiningError: It is damaged.
    """
    try:
        return read_npz(path, names, ("float32", "int64"))
    except DAMAGED as error:
        raise MiningError(f"{path}: damaged ({one_line(error)}); remove its folder and start again") from error
