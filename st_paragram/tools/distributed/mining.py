"""What the steps of mining share: settings, and a folder on a file system of all machines.

    texts/SIDE/*.parquet       texts in groups by hash, one file per task (DealTexts)
    vectors/SIDE/*.parquet     distinct sentences and their embeddings (EmbedTexts)
    index/SIDE.faiss           index without vectors (TrainIndex, TuneSearch)
    index/SIDE/*.faiss         files of the index, one per task (AddVectors)
    neighbors/SIDE/*.npz       neighbors of each sentence on the other side (SearchVectors)
    pairs/SIDE/*.npy           best pair of each sentence, best first (ScorePairs)
    pairs/matched              pairs with each sentence once, best first (MatchPairs)
    mined/*.tsv                texts of these pairs (WritePairs)

A side is `source` or `target`. The sentences of a side are numbered in the order of the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.core.files import read_json, write_json
from st_paragram.core.folders import make_own_folder
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.distributed.base import PARQUET, PURPOSE, STEP
from st_paragram.tools.neighbors.vectors import Rows

FAISS: Any = require("faiss", "distributed", PURPOSE)
SIDES = ("source", "target")
#: A candidate pair: score, and the numbers of both sentences.
PAIR = np.dtype([("score", np.float64), ("source", np.int64), ("target", np.int64)])

Numbers = NDArray[np.int64]


class MiningStep(STEP):
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
        self.side = side
        self.other_side = SIDES[1 - SIDES.index(side)]
        self.settings = settings

    @cached_property
    def own(self) -> Side:
        """Sentences of the side."""
        return Side(self.folder, self.side)

    @cached_property
    def other(self) -> Side:
        """Sentences of the other side."""
        return Side(self.folder, self.other_side)


def make_mining_folder(folder: Path, options: Mapping[str, object]) -> None:
    """Create the folder of all steps, or accept that of an earlier run with the same options.

    Completed tasks are not repeated, so results of other options must not stay.

    Raises:
        ParagramError: The folder has other files.
        SettingsError: The folder belongs to a run with other options.
    """
    make_own_folder(folder)
    path = folder / "options.json"
    wanted = {name: str(value) for name, value in options.items()}
    if not path.is_file():
        write_json(path, wanted)
    made_with = read_json(path)
    for name, value in wanted.items():
        if made_with.get(name) != value:
            raise SettingsError(
                f"{folder}: made with {name} {made_with.get(name)}, not {value}; use a new folder"
            )


def trained_index(folder: Path, side: str) -> Path:
    """Return the path of a trained index."""
    return folder / "index" / f"{side}.faiss"


class Side:
    """The sentences of a side and their vectors, read file by file.

    Attributes:
        paths: Parquet files with `text` and `embedding`.
        files: Numbers of the files that are not empty.
        begins: Number of the first sentence of each file, and the number of all sentences.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Find the files."""
        self._folder = folder
        self._name = name
        self.paths = sorted((folder / "vectors" / name).glob("*.parquet"))
        counts = [PARQUET.read_metadata(path).num_rows for path in self.paths]
        self.files = np.flatnonzero(counts).tolist()
        self.begins = np.cumsum([0, *counts])
        if not len(self):
            raise MiningError(
                f"{folder / 'vectors' / name}: no sentences in {len(counts)} Parquet files; run"
                " EmbedTexts first"
            )

    def __len__(self) -> int:
        """Number of sentences."""
        return int(self.begins[-1])

    def result(self, kind: str, file: int, suffix: str) -> Path:
        """Return the path of what a step makes from a file."""
        return self._folder / kind / self._name / f"{self.paths[file].stem}{suffix}"

    def vectors(self, file: int) -> Rows:
        """Read the vectors of a file."""
        column = self._column(file, "embedding")
        numbers = column.combine_chunks().flatten().to_numpy()
        return Rows([numbers.reshape(-1, column.type.list_size)])

    def first_vectors(self, count: int) -> Rows:
        """Read the vectors of the first files, until there are `count`.

        A file is a random sample of the sentences, since texts are grouped by hash.
        """
        files = int(np.searchsorted(self.begins[1:-1], count)) + 1
        shards = [self.vectors(file).shards[0] for file in range(files)]
        return Rows([np.concatenate(shards)])

    def texts(self, numbers: Numbers) -> list[str]:
        """Read sentences by number."""
        texts = np.empty(len(numbers), object)
        for file, places in self.places(numbers):
            rows = numbers[places] - self.begins[file]
            texts[places] = self._column(file, "text").take(rows).to_pylist()
        return list(texts)

    def places(self, numbers: Numbers) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield each file, and which of the numbers are those of its sentences."""
        for file in self.files:
            begin, end = self.begins[file : file + 2]
            yield file, (numbers >= begin) & (numbers < end)

    def _column(self, file: int, name: str) -> Any:
        return PARQUET.read_table(self.paths[file], columns=[name], memory_map=True)[name]
