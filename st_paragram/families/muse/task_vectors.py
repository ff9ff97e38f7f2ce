"""Rows of tasks as the vectors of a finished encoder: every text is embedded once, before training."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.files import atomic, content_digest, digest
from st_paragram.families.muse.tasks import read_texts, task_files
from st_paragram.tools.embed_files import StoredEmbeddings, embed_files, read_embeddings

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


def read_rows(folders: Mapping[str, Path], texts: Path) -> list[PairRows]:
    """Read the rows of all tasks, and write their texts, each once.

    Args:
        folders: Folders of `LANG.tsv` by their tasks.
        texts: The file to write, one text per line; row i of a collection made of it is the vector of text i.
    """
    files = [(task, *each) for task, folder in folders.items() for each in task_files(folder, task).items()]
    found, seen = [], _Texts()
    with atomic(texts) as output:
        for task, language, path in files:
            parts = []
            with TemporaryDirectory(dir=texts.parent) as work:
                for rows in read_texts(path, task, Path(work)).iter(_CHUNK):
                    lines: list[bytes] = []
                    texts_of_rows = zip(rows["first"], rows["second"], rows["label"], strict=True)
                    parts += [(seen.number(a, lines), seen.number(b, lines), label) for a, b, label in texts_of_rows]
                    output.write(b"".join(line + b"\n" for line in lines))
            found.append(PairRows(task, language, *np.array(parts, np.int64).T.copy()))
    return found


def vectors_of(texts: Path, model: Path, folder: Path) -> StoredEmbeddings:
    """Unit vectors of all lines of a text, float16 on disk, made once in a folder; an interrupted run is resumed.

    Raises:
        ModelDirectoryError: There is no such model.
        ParagramError: The folder cannot be written.
    """
    output = folder / f"vectors-{digest(content_digest(texts), fingerprint(model))}"
    if not output.exists():
        embed_files(model, texts, output, dtype="float16", normalize=True)
    return read_embeddings(output)
