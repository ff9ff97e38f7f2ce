"""Rows of tasks as the vectors of a finished encoder: every text is embedded once, before training."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.encoding.packing import NumberType
from st_paragram.core.files import atomic, content_digest, digest
from st_paragram.errors import TextError
from st_paragram.families.muse.tasks.store_files import KnownTexts
from st_paragram.families.muse.tasks.task_files import TaskFileCounts, TaskRow, read_task_file, task_files
from st_paragram.tools.embed_files.collection import embed_collection
from st_paragram.tools.embed_files.reader import StoredEmbeddings, read_embeddings
from st_paragram.tools.embed_files.settings import CollectionSettings
from st_paragram.tools.stages.work import Work

logger = logging.getLogger(__name__)

_CHUNK = 4096


@dataclass(frozen=True)
class PairRows:
    """The rows of one task and language, n of them.

    Attributes:
        task: "qa", "response" or "nli".
        language: Of both sides.
        first: Vectors of questions, utterances or premises, int64 (n,).
        second: Vectors of answers, responses or hypotheses, int64 (n,).
        labels: Of inference, int64 (n,); -1 in other tasks.
    """

    task: str
    language: str
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.first)

    def take(self, rows: NDArray[np.int64]) -> PairRows:
        """Some of the rows."""
        return PairRows(self.task, self.language, self.first[rows], self.second[rows], self.labels[rows])

    def held_out(self, share: float) -> tuple[PairRows, PairRows]:
        """Rows to train on, and rows held out: a text that decides is on one side only.

        That is the answer of a question and the premise of an inference, of which there are several rows.
        """
        keys = (self.first if self.task == "nli" else self.second).astype(np.uint64)
        mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)  # 24 bits of a multiplicative hash
        held = mixed < share * (1 << 24)
        return self.take(np.flatnonzero(~held)), self.take(np.flatnonzero(held))


@dataclass
class _Texts:
    """Numbers of texts in the order in which they are first seen; 16 bytes are kept of each."""

    numbers: dict[bytes, int] = field(default_factory=dict)

    def number(self, text: str, lines: list[bytes]) -> int:
        encoded = text.encode()
        key = hashlib.blake2b(encoded, digest_size=16).digest()
        if (found := self.numbers.get(key)) is None:
            found = self.numbers[key] = len(self.numbers)
            lines.append(encoded)
        return found


def read_rows(folders: Mapping[str, Path], texts: Path, known: KnownTexts) -> list[PairRows]:
    """Read the rows of all tasks, and write their texts, each once.

    Args:
        folders: Folders of `LANG.tsv` by their tasks.
        texts: The file to write, one text per line; row i of a collection made of it is the vector of text i.
        known: Rows with one of these texts are left out, and counted in the log.

    Raises:
        TextError: A folder has no file, or a file is refused, see `read_task_file`.
    """
    files = [(task, *each) for task, folder in folders.items() for each in task_files(folder, task).items()]
    found, seen = [], _Texts()
    with atomic(texts) as output:
        for task, language, path in files:
            parts, left_out, counts = [], 0, TaskFileCounts()
            for chunk in _chunks(path, task, counts):
                lines: list[bytes] = []
                refused = known([row.first for row in chunk]) | known([row.second for row in chunk])
                left_out += int(refused.sum())
                kept = [row for row, bad in zip(chunk, refused, strict=True) if not bad]
                numbers = [(seen.number(r.first, lines), seen.number(r.second, lines), r.label) for r in kept]
                parts.append(np.array(numbers, np.int64).reshape(-1, 3))
                output.write(b"".join(line + b"\n" for line in lines))
            for line in counts.lines(str(path)):
                logger.warning("%s", line)
            if left_out:
                logger.warning("%s: %s rows have sentences of %s, left out", path, f"{left_out:,}", known.name)
            first, second, labels = np.concatenate(parts).T.copy()
            if not len(first):
                raise TextError(f"{path}: no row is left, all {left_out:,} are test sentences; give others")
            found.append(PairRows(task, language, first, second, labels))
    return found


def _chunks(path: Path, task: str, counts: TaskFileCounts) -> Iterator[Sequence[TaskRow]]:
    rows = read_task_file(path, task, counts)
    with tqdm(unit=" rows", desc=path.name) as bar:
        while chunk := list(islice(rows, _CHUNK)):
            bar.update(len(chunk))
            yield chunk


def vectors_of(texts: Path, model: Path, folder: Path) -> StoredEmbeddings:
    """Unit vectors of all lines of a text, float16 on disk, made once in a folder; an interrupted run is resumed.

    Raises:
        ModelDirectoryError: There is no such model.
        ParagramError: The folder cannot be written.
    """
    output = folder / f"vectors-{digest(content_digest(texts), fingerprint(model))}"
    if not output.exists():
        settings = CollectionSettings(dtype=NumberType.FLOAT16, normalize=True)
        embed_collection(texts, output, model, settings, work=Work(keep=False))
    return read_embeddings(output)
