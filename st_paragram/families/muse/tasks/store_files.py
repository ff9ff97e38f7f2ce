"""Encode the file of one task and language into its stores, in flat memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.pair_store import PairStoreWriter
from st_paragram.core.tokenizers.base import FlatIds, Tokenizer
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.errors import TextError
from st_paragram.families.muse.tasks.task_files import TaskFileCounts, TaskRow, read_task_file

_CHUNK = 4096


class KnownTexts(Protocol):
    """Texts that must not be trained on.

    Attributes:
        name: what they are, for messages.
        identity: other texts have another one.
    """

    name: str
    identity: str

    def __call__(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each of n texts is one of them, bool (n,)."""


@dataclass
class TaskCounts:
    """What became of the rows of a file; the rows of the store are `rows` less bad and test rows.

    Attributes:
        rows: read.
        bad: left out because they cannot be read, by kind.
        test_rows: left out because one of their texts must not be trained on.
        seconds: that reading and encoding took; 0 for a store that was there.
    """

    rows: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    test_rows: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The numbers as JSON values, without the seconds: the same file gives the same store."""
        return {name: value for name, value in asdict(self).items() if name != "seconds"}


@dataclass(frozen=True)
class TaskEncoding:
    """How rows become ids.

    Attributes:
        tokenizer: of all texts.
        max_length: texts are cut at this many ids.
        context_length: contexts are cut at this many ids.
        known: texts that rows must not have; contexts are not looked at.
    """

    tokenizer: Tokenizer
    max_length: int
    context_length: int
    known: KnownTexts | None = None

    def write(
        self, source: Path, task: str, language: str, store: Path, contexts: Path | None
    ) -> tuple[TaskCounts, list[str]]:
        """Write the store of a file and, of questions and answers, that of the contexts; each whole or not at all.

        Args:
            source: the file of rows.
            task: its task.
            language: its language, that of both sides.
            store: the store to make; side a question, utterance or premise, with int8 labels of inference.
            contexts: the store of answers (side a) and their contexts (side b) to make, row by row.

        Returns:
            The numbers, and a line for each kind of bad row.

        Raises:
            TextError: the file is refused, see `read_task_file`, or all its rows must not be trained on.
        """
        started, counts, read = time.perf_counter(), TaskCounts(), TaskFileCounts()
        noted = {"task": task, "source": source.name}
        labels, both = np.int8 if task == "nli" else None, (language, language)
        with ExitStack() as stack:
            main = stack.enter_context(
                PairStoreWriter(store, both, self.tokenizer, self.max_length, noted, labels=labels)
            )
            second = None
            if (
                contexts is not None
            ):  # begun last, so that it is finished first: the main store says that both are there
                longest = max(self.max_length, self.context_length)
                second = stack.enter_context(PairStoreWriter(contexts, both, self.tokenizer, longest, noted))
            rows = stack.enter_context(_progress(read_task_file(source, task, read), f"{task} {language}"))
            for chunk in self._kept_chunks(rows, counts):
                self._append(chunk, main, second)
            if not len(main):
                raise TextError(f"{source}: no row is left, all {counts.test_rows:,} are test sentences; give others")
            counts.rows, counts.bad = read.rows, {kind.name.lower(): number for kind, number in read.bad.items()}
            main.settings |= counts.as_json()
        counts.seconds = time.perf_counter() - started
        return counts, read.lines(str(source))

    def _kept_chunks(self, rows: Iterable[TaskRow], counts: TaskCounts) -> Iterator[list[TaskRow]]:
        rest = iter(rows)
        while chunk := list(islice(rest, _CHUNK)):
            if self.known is not None:
                found = self.known(list(chain.from_iterable((row.first, row.second) for row in chunk)))
                dropped: NDArray[np.bool_] = np.logical_or.reduce(found.reshape(-1, 2), axis=1)
                counts.test_rows += int(dropped.sum())
                chunk = [row for row, drop in zip(chunk, dropped.tolist(), strict=True) if not drop]
            if chunk:
                yield chunk

    def _append(self, rows: Sequence[TaskRow], main: PairStoreWriter, second: PairStoreWriter | None) -> None:
        first, answers = (
            self._encode(texts, self.max_length) for texts in ([r.first for r in rows], [r.second for r in rows])
        )
        labels = np.array([row.label for row in rows], np.int8) if rows[0].label >= 0 else None
        main.append(*first, *answers, labels=labels)
        if second is not None:
            second.append(*answers, *self._contexts(rows, *answers))

    def _contexts(self, rows: Sequence[TaskRow], ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> FlatIds:
        """The contexts; where there is none, the very ids of the answer."""
        around, edges = self._encode([row.context for row in rows], self.context_length)
        texts = [
            around[edges[i] : edges[i + 1]] if row.context else ids[offsets[i] : offsets[i + 1]]
            for i, row in enumerate(rows)
        ]
        return np.concatenate(texts), starts(np.array([len(text) for text in texts]))

    def _encode(self, texts: Sequence[str], most: int) -> FlatIds:
        return self.tokenizer.encode(texts, most)


def _progress(rows: Iterable[TaskRow], name: str) -> Any:  # noqa: ANN401 - an iterator that is closed
    return tqdm(rows, desc=name, unit=" rows", unit_scale=True, disable=None)
