"""Held-out rows of each task of a dual encoder, and the share that the model gets right.

The paper tunes on a held-out tenth of each training set (ACL 2020).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.base.evaluation import BaseEvaluator
from tqdm import trange

from st_paragram.core.arrays import Integers
from st_paragram.core.model_directory.record import TaskScore
from st_paragram.errors import SettingsError
from st_paragram.families.muse.losses import DualEncoderTasks
from st_paragram.families.muse.task_rows import TaskRows

if TYPE_CHECKING:
    from torch import Tensor

_MOST = 1_000  # held-out rows of a task and language, about
_FEWEST = 100  # from fewer rows, none are held out
_BLOCK = 1 << 16  # rows read at a time


def hold_out(rows: Sequence[TaskRows], share: float) -> tuple[list[TaskRows], list[TaskRows]]:
    """Split the rows of all tasks into rows to train on and held-out rows.

    A row is held out by a hash of its answer, response, English sentence or premise, so the split
    is the same for all seeds and orders. Rows of any language that have the first or second text of
    a held-out row of the same task are not trained on.

    Args:
        rows: Rows of each task and language.
        share: Share of the rows to hold out, about 1,000 rows of a task and language at most. None
            are held out from fewer than 100 rows.
    """
    if not share:
        return list(rows), []
    held_out = []
    texts: dict[str, list[Integers]] = defaultdict(list)  # labels of held-out texts
    for part in rows:
        chosen = _chosen(part, share)
        if len(chosen):
            held_out.append(part.select(chosen))
            texts[part.task].append(np.stack(part.text_labels(chosen)))
    train = []
    for part in rows:
        if part.task not in texts:
            train.append(part)
            continue
        first, second = np.concatenate(texts[part.task], axis=1)
        train.append(part.select(_without_texts(part, first, second)))
    return train, held_out


def _chosen(part: TaskRows, share: float) -> Integers:
    """Return the numbers of the rows to hold out."""
    if len(part) < _FEWEST:
        return np.zeros(0, np.int64)
    limit = int(min(share, _MOST / len(part)) * (1 << 64))
    chosen = []
    for numbers in _blocks(part):
        first, second = part.text_labels(numbers)
        labels = second if part.task in ("qa", "response") else first
        chosen.append(numbers[labels.view(np.uint64) < np.uint64(limit)])
    return np.concatenate(chosen)


def _without_texts(part: TaskRows, first: Integers, second: Integers) -> Integers:
    """Return the numbers of the rows without these texts, given by labels."""
    kept = []
    for numbers in _blocks(part):
        first_labels, second_labels = part.text_labels(numbers)
        is_held_out = np.isin(first_labels, first) | np.isin(second_labels, second)
        kept.append(numbers[~is_held_out])
    rows = np.concatenate(kept)
    if not len(rows):
        raise SettingsError(
            f"{part.name}: all rows share a text with held-out rows; give more rows, or"
            " --held-out 0"
        )
    return rows


def _blocks(part: TaskRows) -> Iterator[Integers]:
    """Yield the numbers of the rows, many at a time."""
    for begin in trange(0, len(part), _BLOCK, desc="holding out", disable=None, leave=False):
        yield np.arange(begin, min(begin + _BLOCK, len(part)))


class TaskAccuracy(BaseEvaluator):
    """The share of held-out rows that a dual encoder gets right, for each task.

    A sentence must find its translation (mean of both directions), a question its answer and an
    utterance its response, among those of the held-out rows in the same language, as in training:
    through the towers, with contexts. Inference must give the right label.

    Attributes:
        scores: The results of all calls of `measure`.
    """

    def __init__(
        self, loss: DualEncoderTasks, held_out: Sequence[TaskRows], batch_size: int
    ) -> None:
        """Evaluate the model of a loss."""
        super().__init__()
        self.loss = loss
        self.held_out = held_out
        self.batch_size = batch_size
        self.scores: list[TaskScore] = []

    def __call__(self, *_: Any, **__: Any) -> dict[str, float]:
        """Return the accuracy of each task, the mean over its languages."""
        shares = defaultdict(list)
        for part in self.held_out:
            shares[part.task].append(self.accuracy(part))
        return {f"held-out_{task}_accuracy": fmean(values) for task, values in shares.items()}

    def measure(self, when: str) -> None:
        """Append the accuracy of each task and language; `when` is the model's name on the card."""
        for part in self.held_out:
            score = TaskScore(part.name, len(part), when, self.accuracy(part))
            self.scores.append(score)

    @torch.inference_mode()
    def accuracy(self, part: TaskRows) -> float:
        """Return the share of the rows that the model gets right, 0 .. 1."""
        self.loss.eval()
        sides: list[tuple[Tensor, Tensor]] = []
        correct = 0
        for begin in range(0, len(part), self.batch_size):
            batch = part.batch(np.arange(begin, min(begin + self.batch_size, len(part))))
            if batch.labels is None:
                sides.append(self.loss.sides(batch))
            else:
                correct += int(self.loss(batch)[1])
        if not sides:
            return correct / len(part)
        first, second = (torch.cat(vectors) for vectors in zip(*sides, strict=True))
        first_labels, second_labels = part.text_labels(np.arange(len(part)))
        to_second = _share_found(first, second, second_labels)
        if part.task != "translation":
            return to_second
        return (to_second + _share_found(second, first, first_labels)) / 2


def _share_found(queries: Tensor, candidates: Tensor, labels: Integers) -> float:
    """Return the share of n queries whose nearest candidate, (n, D), has the text of the right one.

    Equal labels, (n,), mark equal texts of candidates.
    """
    nearest = (queries @ candidates.T).argmax(1).cpu().numpy()
    return float((labels[nearest] == labels).mean())
