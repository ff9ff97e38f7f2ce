"""The folder that the steps of mining share, on a file system of all machines.

    texts/SIDE/*.parquet       texts in groups by hash, one file per task (DealTexts)
    vectors/SIDE/*.parquet     distinct sentences and their embeddings (EmbedTexts)
    index/SIDE/trained.faiss   index without vectors (TrainIndex)
    index/SIDE/*.faiss         index of each file of vectors (AddVectors)
    neighbors/SIDE/*.npz       neighbors of each sentence on the other side (SearchVectors)
    pairs/SIDE-*.npy           best pair of each sentence, best first (ScorePairs)
    pairs/matched              pairs with each sentence once, best first (MatchPairs)

A side is `source` or `target`. The sentences of a side are numbered in the order of the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.neighbors.vectors import Rows

SIDES = ("source", "target")
#: A candidate pair: score, and the numbers of both sentences.
PAIR = np.dtype([("score", np.float64), ("source", np.int64), ("target", np.int64)])

Numbers = NDArray[np.int64]


def other_side(side: str) -> str:
    """Return the side that is searched for the neighbors of a side."""
    if side not in SIDES:
        raise SettingsError(f"side {side!r} is unknown; choose source or target")
    return SIDES[1 - SIDES.index(side)]


class Side:
    """The sentences of a side and their vectors, read file by file.

    Attributes:
        name: source or target.
        paths: Parquet files with `text` and `embedding`.
        begins: Number of the first sentence of each file, and the number of all sentences.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Find the files."""
        self.name = name
        self.paths = sorted((folder / "vectors" / name).glob("*.parquet"))
        self._parquet: Any = require("pyarrow.parquet", "distributed", "mining on many machines")
        counts = [self._parquet.read_metadata(path).num_rows for path in self.paths]
        self.begins = np.cumsum([0, *counts])
        if not len(self):
            raise MiningError(
                f"{folder / 'vectors' / name}: no sentences in {len(counts)} Parquet files; run"
                " EmbedTexts first"
            )

    def __len__(self) -> int:
        """Number of sentences."""
        return int(self.begins[-1])

    def vectors(self, file: int) -> Rows:
        """Read the vectors of a file."""
        column = self._parquet.read_table(self.paths[file], columns=["embedding"])["embedding"]
        numbers = column.combine_chunks().flatten().to_numpy()
        return Rows([numbers.reshape(-1, column.type.list_size)])

    def first_vectors(self, count: int) -> Rows:
        """Read the vectors of the first files, which have at least `count` sentences if possible.

        A file is a random sample of the sentences, since texts are divided by hashes.
        """
        files = int(np.searchsorted(self.begins[1:-1], count)) + 1
        shards = [self.vectors(file).shards[0] for file in range(files)]
        return Rows([np.concatenate(shards)])

    def texts(self, numbers: Numbers) -> list[str]:
        """Read sentences by number."""
        texts = np.empty(len(numbers), object)
        for file, places in self.places(numbers):
            column = self._parquet.read_table(self.paths[file], columns=["text"])["text"]
            rows = column.take(numbers[places] - self.begins[file])
            texts[places] = np.array(rows.to_pylist(), object)
        return list(texts)

    def places(self, numbers: Numbers) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield each file that has sentences, and which of the numbers are theirs."""
        for file in range(len(self.paths)):
            begin, end = self.begins[file : file + 2]
            if begin < end:
                yield file, (numbers >= begin) & (numbers < end)
