"""Arrays that grow in raw files beside a store, until their lengths are known and they can go into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from st_paragram.core.data.pair_store.content import ArrayDigest
from st_paragram.core.data.pair_store.format import CHUNK


class Spool:
    """One array of numbers of one type, and its digest."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        """Begin an empty array in the file `path`."""
        self.path = path
        self.dtype = dtype
        self.length = 0
        self.digest = ArrayDigest(dtype)
        self._file = path.open("wb")

    def append(self, values: NDArray[Any]) -> None:
        """Append numbers, converted to the type of the array."""
        converted = values.astype(self.dtype)
        self._file.write(converted.tobytes())
        self.digest.add(converted)
        self.length += len(values)

    @property
    def size(self) -> int:
        """Bytes of the numbers."""
        return self.length * self.dtype.itemsize

    def move_into(self, group: h5py.Group, name: str) -> h5py.Dataset:
        """Make a contiguous data set of the array, and remove the file."""
        self._file.close()
        data = group.create_dataset(name, shape=(self.length,), dtype=self.dtype)
        with self.path.open("rb") as raw:
            for start in range(0, self.length, CHUNK):
                piece = np.fromfile(raw, dtype=self.dtype, count=CHUNK)
                data[start : start + len(piece)] = piece
        self.path.unlink()
        return data

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self._file.close()
        self.path.unlink(missing_ok=True)


class SideSpool:
    """The sentences of one side: their ids, and the offsets where they begin."""

    def __init__(self, part: Path, side: str, most_ids: int) -> None:
        """Begin without sentences.

        Args:
            part: the unfinished store, beside which the files stand.
            side: its name.
            most_ids: ids of the side's tokenizer.
        """
        self.side = side
        self._ids = Spool(part.with_name(f"{part.name}.{side}.ids"), np.min_scalar_type(most_ids - 1))
        self._offsets = Spool(part.with_name(f"{part.name}.{side}.offsets"), np.dtype(np.uint64))
        self._offsets.append(np.zeros(1, np.uint64))

    def __len__(self) -> int:
        """Number of sentences."""
        return self._offsets.length - 1

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the two arrays."""
        return self._ids.size, self._offsets.size

    def check(self, ids: NDArray[np.integer[Any]]) -> None:
        """Refuse ids that the array cannot hold.

        Raises:
            ValueError: an id is negative, or too large for the type of the array.
        """
        largest = np.iinfo(self._ids.dtype).max
        if len(ids) and not 0 <= ids.min() <= ids.max() <= largest:
            wrong = ids.max() if ids.max() > largest else ids.min()
            raise ValueError(f"side {self.side}: id {wrong} is not in 0..{largest}")

    def append(self, ids: NDArray[np.integer[Any]], offsets: NDArray[np.integer[Any]]) -> None:
        """Append sentences as flat ids, with offsets from 0."""
        self._offsets.append(offsets[1:] + self._ids.length)
        self._ids.append(ids)

    def digests(self) -> dict[str, ArrayDigest]:
        """Those of both arrays, by their names in the file."""
        return {f"{self.side}/ids": self._ids.digest, f"{self.side}/offsets": self._offsets.digest}

    def move_into(self, group: h5py.Group) -> None:
        """Make the data sets `ids` and `offsets` of a group."""
        self._ids.move_into(group, "ids")
        self._offsets.move_into(group, "offsets")

    def remove(self) -> None:
        """Remove the files."""
        self._ids.remove()
        self._offsets.remove()
