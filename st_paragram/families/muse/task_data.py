"""What a dual encoder is trained on: stores of several tasks, as sources that batches are drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.errors import SettingsError
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.task_sampler import Rows, Source
from st_paragram.families.muse.training_data import OtherTasks

#: Ids of texts one after another, integers (total,), and where texts begin and end, int64 (n + 1,).
FlatTexts = tuple[NDArray[np.integer], NDArray[np.int64]]  # type: ignore[type-arg]


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task and language in a store.

    Attributes:
        task: "translation", "qa", "response" or "nli".
        language: Of the rows; for translations, the language other than English.
        store: Of both sides, and the labels of inference.
        contexts: Of answers: side b has their contexts, row by row; None where there are none.
        numbers: The store's rows that these are, uint32 (n,); None: all of them.
    """

    task: str
    language: str
    store: PairStore
    contexts: PairStore | None = None
    numbers: NDArray[np.uint32] | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.store) if self.numbers is None else len(self.numbers)

    @property
    def name(self) -> str:
        """For logs: "qa en"."""
        return f"{self.task} {self.language}"

    def of_store(self, rows: Rows) -> Rows:
        """Rows of the store, int64 (n,)."""
        return rows if self.numbers is None else self.numbers[rows].astype(np.int64)

    def take(self, side: str, rows: Rows) -> FlatTexts:
        """Texts of side a or b, or the contexts of answers (side "context")."""
        if side == "context":
            assert self.contexts is not None
            return self.contexts.take("b", self.of_store(rows))
        return self.store.take(side, self.of_store(rows))


def all_rows(bitext: PairStore, tasks: OtherTasks) -> list[TaskRows]:
    """The rows of all tasks: translations of each language, then the other tasks."""
    kept = tasks.languages
    translations = [each for each in _translations(bitext) if not kept or each.language in kept]
    return [*translations, *(TaskRows(each.task, each.language, each.store, each.contexts) for each in tasks.stores)]


def _translations(bitext: PairStore) -> Iterator[TaskRows]:
    """The rows of each language; where there are several, their numbers are kept, 4 bytes per pair."""
    pairs = bitext.language_pairs
    if len(pairs) == 1:
        yield TaskRows("translation", pairs[0][1], bitext)
        return
    numbers = bitext.language_numbers()
    for number, (_, language) in enumerate(pairs):
        if len(found := np.flatnonzero(numbers == number).astype(np.uint32)):
            yield TaskRows("translation", language, bitext, numbers=found)


def sources(
    rows: Sequence[TaskRows], settings: DualEncoderSettings, table: NDArray[np.float32]
) -> tuple[list[TaskRows], list[Source]]:
    """What batches are drawn from: tasks by their shares, a task's languages by their sizes to a power.

    Args:
        rows: of all tasks.
        settings: of the run.
        table: float32 (V, D), the embeddings that training begins with.

    Returns:
        The rows that have a share, and a source for each.

    Raises:
        SettingsError: there are none.
    """
    shares = {str(task): share for task, share in settings.shares.items()}
    used = [each for each in rows if shares[each.task] > 0]
    if not used:
        raise SettingsError("no task has both data and a share of the steps; give data, or another task a share")
    sizes = {each.task: 0.0 for each in used}
    for each in used:
        sizes[each.task] += len(each) ** settings.language_power
    return used, [
        Source(
            each.name,
            len(each),
            shares[each.task] * len(each) ** settings.language_power / sizes[each.task],
            _Lengths(each),
            _Vectors(each, table),
        )
        for each in used
    ]


@dataclass(frozen=True)
class _Lengths:
    """Lengths of both sides together."""

    of: TaskRows

    def __call__(self, rows: Rows) -> NDArray[np.int64]:
        return sum((np.diff(self.of.take(side, rows)[1]) for side in SIDES), np.zeros(len(rows), np.int64))


@dataclass(frozen=True)
class _Vectors:
    """Unit means of the rows of both sides, added up."""

    of: TaskRows
    table: NDArray[np.float32]

    def __call__(self, rows: Rows) -> NDArray[np.float32]:
        whole = np.zeros((len(rows), self.table.shape[1]), np.float32)
        for side in SIDES:
            ids, offsets = self.of.take(side, rows)
            whole += unit_means(self.table, ids, offsets)
        return whole


def unit_means(
    table: NDArray[np.float32],
    ids: NDArray[np.integer],  # type: ignore[type-arg]
    offsets: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Directions of the mean rows of texts, float32 (n, D).

    Args:
        table: float32 (V, D).
        ids: integers (total,).
        offsets: int64 (n + 1,), no text empty.
    """
    import torch
    import torch.nn.functional as F

    where = torch.from_numpy(offsets[:-1].astype(np.int64))
    means = F.embedding_bag(torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(table), where, mode="mean")
    return F.normalize(means, dim=1).numpy()
