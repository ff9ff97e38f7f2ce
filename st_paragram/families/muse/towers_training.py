"""Towers and a classifier of inference, trained over the vectors of a finished encoder (ACL 2020, section 2).

The encoder's vectors are made once and never change, so that an epoch takes seconds. After each epoch, rows that were
held out are looked at; the best epoch is kept, and that may be none: then what is trained stays as it began.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn
from tqdm import tqdm

from st_paragram.core.encoding.find import find
from st_paragram.core.files import output_lock
from st_paragram.errors import TextError
from st_paragram.families.muse.card_facts import towers_card
from st_paragram.families.muse.losses import ranking_loss, sharing
from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
from st_paragram.families.muse.settings import TowersSettings
from st_paragram.families.muse.task_vectors import PairRows, read_rows, vectors_of
from st_paragram.families.muse.towers import DOCUMENT, QUERY, TaskHeads, through
from st_paragram.learning.models import directory
from st_paragram.tools.embed_files.reader import StoredEmbeddings
from st_paragram.tools.stages.work import Work

_PAIRED = ("qa", "response")
_FEWEST = 16  # pairs of a batch: fewer are hardly each other's negatives
_CANDIDATES = 4096  # held-out rows of a language that are looked at
_WEIGHT_DECAY = 0.01


@dataclass(frozen=True)
class Curve:
    """A learning curve on rows that were held out.

    Attributes:
        measure: What was measured.
        rows: Rows that were held out.
        values: Before training and after each epoch, 0 .. 1.
    """

    measure: str
    rows: int
    values: tuple[float, ...]

    @property
    def best(self) -> int:
        """The epoch that was kept; 0: none, the beginning."""
        return int(np.argmax(self.values))


def make_towers(
    model: str | Path,
    folders: Mapping[str, Path],
    output: str | Path,
    settings: TowersSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> list[Curve]:
    """Train towers and a classifier over a finished encoder, and save it with them.

    Vectors are kept in `.<output>.work` until all is done; the same call resumes an interrupted
    run there.

    Args:
        model: Directory, name or hub id of the encoder, any model that `st_paragram.load` opens.
        folders: Folders of `LANG.tsv` (see `task_files`) by their tasks: "qa", "response", "nli".
        output: The model directory to make.
        settings: Of the training.
        name: The encoder's name on the card; by default that of its directory.
        overwrite: Replace a model directory that exists.

    Returns:
        Learning curves on rows that were held out.
    """
    settings, output, found = settings or TowersSettings(), Path(output), find(model)
    encoder = directory.load(found)
    torch.manual_seed(settings.seed)
    made = EncoderWithTowers.over(encoder)
    work = Work().folder_for(output)
    with output_lock(output):
        work.mkdir(parents=True, exist_ok=True)
        rows = read_rows(folders, work / "texts.txt")
        curves = train_towers(made, rows, vectors_of(work / "texts.txt", found, work), settings)
        card = towers_card(output.name, name or found.name, made, rows, curves)
        directory.save(made, output, card, overwrite)
        shutil.rmtree(work)
    return curves


@dataclass(frozen=True)
class _Vectors:
    """Vectors by number, on a device."""

    stored: StoredEmbeddings
    device: torch.device

    def __call__(self, numbers: NDArray[np.int64]) -> Tensor:
        return F.normalize(torch.from_numpy(self.stored.take(numbers)).to(self.device), dim=1)


def train_towers(
    model: EncoderWithTowers, rows: Sequence[PairRows], stored: StoredEmbeddings, settings: TowersSettings
) -> list[Curve]:
    """Train towers on questions and responses, and the classifier on inference, as far as there are rows of them.

    Args:
        model: Whose towers and classifier are trained; its encoder is not used.
        rows: Of all tasks.
        stored: The encoder's vectors of the texts of the rows.
        settings: Of the training.

    Returns:
        The learning curves.

    Raises:
        TextError: Too few rows to hold some of them out.
    """
    vectors, curves = _Vectors(stored, model.device), []
    parts = [each.held_out(settings.held_out) for each in rows]
    pairs = [part for part in parts if part[0].task in _PAIRED]
    inference = [part for part in parts if part[0].task == "nli"]
    router = cast("Router", model[-1])
    if pairs:
        train, held = map(list, zip(*pairs, strict=True))
        curves.append(_train_pairs(router, train, held, vectors, settings))
    if inference:
        train, held = map(list, zip(*inference, strict=True))
        curves.append(_train_inference(model.heads, train, held, vectors, settings))
    model.trained_on({each.task for each in rows})
    return curves


def _train_pairs(
    router: Router, train: list[PairRows], held: list[PairRows], vectors: _Vectors, settings: TowersSettings
) -> Curve:
    looked_at = [each.take(np.arange(min(len(each), _CANDIDATES))) for each in _some(held, settings)]

    def loss(rows: PairRows) -> Tensor:
        questions = through(router, QUERY, vectors(rows.first))
        answers = through(router, DOCUMENT, vectors(rows.second))
        equal = sharing(torch.from_numpy(rows.first), torch.from_numpy(rows.second)).to(questions.device)
        return ranking_loss(questions, answers, settings.scale, 0.0, equal)

    def found() -> float:
        return fmean(_found(router, each, vectors) for each in looked_at)

    values = _fit(router, train, settings.epochs, settings.learning_rate, settings, loss, found)
    return Curve("answers found among those held out", sum(map(len, looked_at)), values)


def _found(router: Router, rows: PairRows, vectors: _Vectors) -> float:
    """Share of questions whose answer is the nearest of all answers of the rows."""
    answers = np.unique(rows.second)
    among = through(router, DOCUMENT, vectors(answers))
    nearest = (through(router, QUERY, vectors(rows.first)) @ among.T).argmax(1).cpu().numpy()
    return float((answers[nearest] == rows.second).mean())


def _train_inference(
    heads: TaskHeads, train: list[PairRows], held: list[PairRows], vectors: _Vectors, settings: TowersSettings
) -> Curve:
    looked_at = _some(held, settings)

    def logits(rows: PairRows, dropout: float = 0.0) -> Tensor:
        return heads.logits(vectors(rows.first), vectors(rows.second), dropout)

    def loss(rows: PairRows) -> Tensor:
        return F.cross_entropy(logits(rows, settings.nli_dropout), torch.from_numpy(rows.labels).to(vectors.device))

    def right() -> float:
        parts = [part for each in looked_at for part in _batches(each, np.arange(len(each)), _CANDIDATES)]
        hits = sum(int((logits(part).argmax(1).cpu().numpy() == part.labels).sum()) for part in parts)
        return hits / sum(map(len, looked_at))

    values = _fit(heads.classifier, train, settings.nli_epochs, settings.nli_learning_rate, settings, loss, right)
    return Curve("labels of inference found right", sum(map(len, looked_at)), values)


def _some(held: list[PairRows], settings: TowersSettings) -> list[PairRows]:
    """What is held out of each language, where it is more than one row.

    Raises:
        TextError: Nothing is, so that no epoch could be chosen.
    """
    if not (some := [each for each in held if len(each) > 1]):
        seen = f"too few rows to hold out {settings.held_out:.0%} of them"
        raise TextError(f"{held[0].task}: {seen}; give more, or a larger --held-out")
    return some


def _fit(
    module: nn.Module,
    train: list[PairRows],
    epochs: int,
    learning_rate: float,
    settings: TowersSettings,
    loss: Callable[[PairRows], Tensor],
    score: Callable[[], float],
) -> tuple[float, ...]:
    """Train a module by AdamW, keep the best epoch, and give the scores before training and after each epoch."""
    rng = np.random.default_rng(settings.seed)
    optimizer = torch.optim.AdamW(module.parameters(), learning_rate, weight_decay=_WEIGHT_DECAY)
    steps = epochs * sum(-(-len(each) // settings.batch_size) for each in train)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
    values, best = [_scored(score)], copy.deepcopy(module.state_dict())
    with tqdm(total=steps, unit=" steps", desc="training") as bar:
        for _ in range(epochs):
            for batch in _epoch(train, settings.batch_size, rng):
                optimizer.zero_grad()
                loss(batch).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
                bar.update()
            values.append(_scored(score))
            if values[-1] > max(values[:-1]):  # the first of equal epochs, as `Curve.best` says
                best = copy.deepcopy(module.state_dict())
    module.load_state_dict(best)
    return tuple(values)


def _scored(score: Callable[[], float]) -> float:
    with torch.inference_mode():
        return score()


def _epoch(train: list[PairRows], size: int, rng: np.random.Generator) -> list[PairRows]:
    """Batches of one task and language each, in random order; what is too small to be a batch is left for another."""
    batches = [part for each in train for part in _batches(each, rng.permutation(len(each)), size)]
    batches = [each for each in batches if len(each) >= _FEWEST] or batches
    return [batches[number] for number in rng.permutation(len(batches))]


def _batches(rows: PairRows, order: NDArray[np.int64], size: int) -> Iterator[PairRows]:
    for begin in range(0, len(order), size):
        yield rows.take(order[begin : begin + size])
