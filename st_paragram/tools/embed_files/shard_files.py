"""Files of shards, whatever their format: what they hold, what they are called, what can be done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from st_paragram.tools.embed_files.number_types import NumberType, Packed

#: Writes the next embeddings of a shard, with the lines that they are of.
Write = Callable[[Packed, Sequence[str]], None]


@dataclass(frozen=True)
class ShardShape:
    """What a shard holds.

    Attributes:
        rows: Embeddings, n.
        dimension: Components of each, D.
        dtype: Type of the numbers.
        with_text: Whether the lines stand beside the embeddings.
    """

    rows: int
    dimension: int
    dtype: NumberType
    with_text: bool = False


class ShardReader(Protocol):
    """A shard that is open for reading."""

    def take(self, rows: slice | NDArray[Any]) -> Packed:
        """Embeddings of neighbouring rows, or of rows by their numbers."""

    def texts(self, rows: slice) -> list[str]:
        """The lines of neighbouring rows."""


def scales_file(path: Path) -> Path:
    """The file with the scales of the int8 matrix in a `.npy` file."""
    return path.with_name(f"{path.stem}.scales.npy")


def shard_files(path: Path, dtype: NumberType) -> list[Path]:
    """All files of a shard."""
    return [path, scales_file(path)] if (path.suffix, dtype) == (".npy", NumberType.INT8) else [path]
