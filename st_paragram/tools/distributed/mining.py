"""What the steps of mining share: settings, and a folder on a file system of all machines.

    texts/SIDE/*.parquet       texts in groups by hash (DealTexts)
    vectors/SIDE/*.parquet     distinct sentences and their embeddings (EmbedTexts)
    trained/SIDE/*.faiss       index without vectors (TrainIndex)
    index/SIDE/*.faiss         copies of it with the vectors of consecutive files (IndexVectors)
    effort/SIDE/*.json         search effort for the sentences of the side (ChooseEffort)
    neighbors/SIDE/*.parquet   neighbors of each sentence on the other side (SearchVectors)
    means/SIDE/*.parquet       mean cosine of each sentence with its neighbors (SearchVectors)
    pairs/SIDE/*.parquet       best pair of each sentence, best first (ScorePairs)
    matches/*.parquet          pairs with each sentence once, best first (MatchPairs)
    mined/*.tsv                texts of these pairs (WritePairs)

A side is `source` or `target`. The sentences of a side are numbered in the order of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.pipeline.base import PipelineStep
from numpy.typing import NDArray
from pyarrow.dataset import dataset

from st_paragram.core.files import atomic, read_json, write_json
from st_paragram.core.folders import make_own_folder
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors.results import NONE, Vectors
from st_paragram.tools.neighbors.vectors import Rows

SIDES = ("source", "target")
_BLOCK = 1 << 14  # vectors in memory at a time


class MiningStep(PipelineStep):
    """A step of mining.

    Args:
        folder: Folder that all steps share, on a file system of all machines.
        side: `source` or `target`.
        settings: Options of `mine`. Candidates must be `max`; texts without ids.
    """

    type = "⛏ - MINING"

    def __init__(
        self, folder: str | Path, side: str = "source", settings: MiningSettings | None = None
    ) -> None:
        """Check the settings."""
        super().__init__()
        settings = settings or MiningSettings()
        if side not in SIDES:
            raise SettingsError(f"side {side!r} is unknown; choose source or target")
        if settings.candidates is not Candidates.MAX or settings.paraphrase or settings.with_ids:
            raise SettingsError(
                "candidates other than max, paraphrases and ids cannot be mined on many machines;"
                " leave these options out"
            )
        self.folder: Path = Path(folder)
        self.settings = settings
        self.own: Side = Side(self.folder, side)
        self.other: Side = Side(self.folder, SIDES[1 - SIDES.index(side)])


class Side:
    """The sentences of a side, and the files of steps, which have the numbers of tasks."""

    def __init__(self, folder: Path, name: str) -> None:
        """Use the folder of all steps."""
        self._folder = folder
        self.name = name

    def path(self, kind: str, number: int, suffix: str = ".parquet") -> Path:
        """Return the path of a file of a kind, such as `pairs`."""
        return self._folder / kind / self.name / f"{number:05d}{suffix}"

    def paths(self, kind: str) -> list[Path]:
        """Return the paths of all files of a kind, in order."""
        return sorted(self.path(kind, 0).parent.glob("[0-9]*"))

    @cached_property
    def begins(self) -> list[int]:
        """Number of the first sentence of each file, and the number of all sentences."""
        begins = [0]
        for path in self.paths("vectors"):
            begins.append(begins[-1] + pq.read_metadata(path).num_rows)
        if begins[-1] == 0:
            raise MiningError(f"{self._folder}: no {self.name} sentences; run EmbedTexts first")
        return begins

    def __len__(self) -> int:
        """Number of sentences."""
        return self.begins[-1]

    def files(self) -> list[int]:
        """Return the numbers of the files that are not empty."""
        return np.flatnonzero(np.diff(self.begins)).tolist()

    def vectors(self, files: Iterable[int]) -> Iterator[Rows]:
        """Yield the vectors of files in blocks."""
        for file in files:
            table = pq.ParquetFile(self.path("vectors", file))
            for block in table.iter_batches(_BLOCK, columns=["embedding"]):
                numbers = block["embedding"].flatten().to_numpy()
                yield Rows([numbers.reshape(len(block), -1)])

    def sample(self, count: int) -> Rows:
        """Read the vectors of at least `count` sentences, or all, with equal steps."""
        step = max(1, len(self) // count)
        shards = [rows.shards[0][::step].copy() for rows in self.vectors(self.files())]
        return Rows([np.concatenate(shards)])

    def cosines(self, queries: Vectors, numbers: NDArray[np.int64]) -> Vectors:
        """Compute the cosines of each query, (n, D), with given sentences, (n, c), -1 for none.

        All vectors are read once, in blocks.
        """
        cosines = np.full(numbers.shape, NONE, np.float32)
        order = np.argsort(numbers, axis=None)
        ordered = numbers.ravel()[order]
        begin = 0
        for rows in self.vectors(self.files()):
            end = begin + len(rows)
            first, last = np.searchsorted(ordered, [begin, end])
            own = order[first:last]
            own_queries = queries[own // numbers.shape[1]]
            own_rows = ordered[first:last, None] - begin
            cosines.flat[own] = rows.cosines(own_queries, own_rows)
            begin = end
        return cosines

    def take(self, kind: str, name: str, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
        """Read the values of a column for m sentences by number, (m,)."""
        return dataset(self.paths(kind)).take(numbers, columns=[name])[name]


def write_table(columns: Any, path: Path) -> None:
    """Write columns by name, or a table, as a Parquet file, whole or not at all.

    Numbers are stored as they are, so that streams of many files need little memory.
    """
    with atomic(path) as file:
        pq.write_table(pa.table(columns), file, compression="none", use_dictionary=False)


def make_mining_folder(folder: Path, options: Mapping[str, object]) -> None:
    """Create the folder of all steps, or accept that of an earlier run with the same options.

    Completed tasks are not repeated, so results of other options must not stay.

    Raises:
        ParagramError: The folder has other files.
        SettingsError: The folder belongs to a run with other options.
    """
    make_own_folder(folder)
    path = folder / "options.json"
    if not path.is_file():
        write_json(path, options)
    first_options = read_json(path)
    for name, value in options.items():
        first = first_options.get(name)
        if first != value:
            raise SettingsError(
                f"{folder}: made with {name} {first}, not {value}; use a new folder"
            )
