"""Rows of text pairs as indices of stored vectors, for training on top of a finished encoder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from st_paragram.core.arrays import Integers
from st_paragram.core.files import atomic, content_digest, digest
from st_paragram.families.muse.tasks import read_texts
from st_paragram.tools.embed_files import embed_files


@dataclass(frozen=True)
class PairRows:
    """The n rows of one task and language, as indices of vectors, int64 (n,) each."""

    task: str  # "qa", "response" or "nli"
    language: str
    first: Integers  # questions, utterances or premises
    second: Integers  # answers, responses or hypotheses
    labels: Integers  # labels of inference; -1 in other tasks

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.first)

    def take(self, rows: NDArray[Any] | slice) -> PairRows:
        """Select some of the rows."""
        return PairRows(
            self.task,
            self.language,
            first=self.first[rows],
            second=self.second[rows],
            labels=self.labels[rows],
        )

    def batches(self, size: int) -> Iterator[PairRows]:
        """Yield the rows, `size` at a time."""
        for begin in range(0, len(self), size):
            yield self.take(slice(begin, begin + size))

    def held_out(self, share: float) -> tuple[PairRows, PairRows]:
        """Split into rows to train on and held-out rows, so that no answer or premise is in both.

        An answer or premise may occur in several rows.
        """
        keys = self.first if self.task == "nli" else self.second
        # 24 bits of a multiplicative hash
        hashes = (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        is_held_out = hashes < share * (1 << 24)
        return self.take(~is_held_out), self.take(is_held_out)


def read_rows(files: Sequence[tuple[str, str, Path]], texts: Path) -> list[PairRows]:
    """Read the rows of files (task, language, path), and write each distinct text once.

    Line i of `texts` is text i. A file of an interrupted run is complete, and stays as it is.
    """
    all_rows = []
    with Path(os.devnull).open("wb") if texts.exists() else atomic(texts) as output:
        writer = _TextWriter(output)
        for task, language, path in files:
            first: list[int] = []
            second: list[int] = []
            labels: list[int] = []
            for rows in read_texts(path, task):
                for row in rows:
                    first.append(writer.number(row.first))
                    second.append(writer.number(row.second))
                    labels.append(row.label)
            columns = [np.array(column, np.int64) for column in (first, second, labels)]
            all_rows.append(PairRows(task, language, *columns))
    return all_rows


class _TextWriter:
    """Writes each distinct text once, and numbers them."""

    def __init__(self, output: IO[bytes]) -> None:
        self.output = output
        self.numbers: dict[bytes, int] = {}  # keys are 16-byte hashes of texts

    def number(self, text: str) -> int:
        line = text.encode()
        key = hashlib.blake2b(line, digest_size=16).digest()
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.output.write(line + b"\n")
        return self.numbers[key]


def vectors_of(
    texts: Path, encoder: SentenceTransformer, identity: str, folder: Path
) -> NDArray[np.float16]:
    """Compute unit vectors of all lines of a file, once, in a folder.

    An interrupted run is resumed. `identity` identifies the encoder.
    """
    output = folder / f"vectors-{digest(content_digest(texts), identity)}.npy"
    if not output.exists():
        embed_files(encoder, texts, output, normalize=True, dtype="float16")
    return cast("NDArray[np.float16]", np.load(output, mmap_mode="r"))
