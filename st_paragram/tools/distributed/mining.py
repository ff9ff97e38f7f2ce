"""What the steps of mining share: settings, and a folder on a file system of all machines.

    texts/SIDE/*.parquet       texts in groups by hash (DealTexts)
    vectors/SIDE/*.parquet     distinct sentences and their embeddings (EmbedTexts)
    index/SIDE/*/*.faiss       index of each part, with its search effort in effort/SIDE/*.json
                               (IndexVectors)
    neighbors/SIDE/*.parquet   neighbors of each sentence on the other side (SearchVectors)
    means/SIDE/*.parquet       mean cosine of each sentence with its neighbors (SearchVectors)
    pairs/SIDE/*.parquet       best pair of each sentence, best first (ScorePairs)
    matches/*.parquet          pairs with each sentence once, best first (MatchPairs)
    mined/*.tsv                texts of these pairs (WritePairs)

A side is `source` or `target`. The sentences of a side are numbered in the order of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.batching import batched
from pyarrow.dataset import dataset

from st_paragram.core.files import atomic, read_json, write_json
from st_paragram.core.folders import make_own_folder
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors.vectors import Rows

SIDES = ("source", "target")
SENTENCE = 1 << 10  # bytes of a sentence in an index and in its vectors


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
        self.folder = Path(folder)
        self.settings = settings
        self.own = Side(self.folder, side)
        self.other = Side(self.folder, SIDES[1 - SIDES.index(side)])


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

    def parts(self, memory: int) -> list[list[int]]:
        """Divide the files into parts: one file, or several that fit into memory."""
        files = self.files()
        size = len(files) * memory // (len(self) * SENTENCE)
        return list(batched(files, max(1, size)))

    def vectors(self, files: Iterable[int]) -> Rows:
        """Read the vectors of files."""
        paths = [self.path("vectors", file) for file in files]
        table = pq.read_table(paths, columns=["embedding"])
        numbers = table["embedding"].combine_chunks().flatten().to_numpy()
        return Rows([numbers.reshape(len(table), -1)])

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
