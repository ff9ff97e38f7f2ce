"""Training of towers and an inference classifier on the vectors of a finished encoder (ACL 2020,
section 2).

The encoder's vectors are computed once and never change, so an epoch takes seconds. Held-out rows
are scored after each epoch, and the best epoch is kept; if no epoch improves the score, the initial
weights are kept.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor, nn
from tqdm import tqdm

import st_paragram
from st_paragram.core.files import atomic, content_digest, digest
from st_paragram.core.model_directory.configuration import check_free, fingerprint
from st_paragram.core.model_directory.find import find
from st_paragram.errors import SettingsError
from st_paragram.families.muse.card_facts import towers_card
from st_paragram.families.muse.losses import ranking_loss, sharing
from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
from st_paragram.families.muse.settings import TowersSettings
from st_paragram.families.muse.tasks import read_texts, task_files
from st_paragram.families.muse.towers import DOCUMENT, QUERY, through
from st_paragram.learning.models import load_save
from st_paragram.tools.embed_files import embed_files
from st_paragram.tools.work import work_folder

_PAIRED = ("qa", "response")
_FEWEST = 16  # minimum pairs per batch: fewer pairs give too few negatives
_CANDIDATES = 4096  # held-out rows scored per language, or at a time for inference
_WEIGHT_DECAY = 0.01


@dataclass(frozen=True)
class PairRows:
    """The n rows of one task ("qa", "response" or "nli") and language, as indices of vectors, int64
    (n,) each.
    """

    task: str
    language: str
    first: NDArray[np.int64]  # questions, utterances or premises
    second: NDArray[np.int64]  # answers, responses or hypotheses
    labels: NDArray[np.int64]  # labels of inference; -1 in other tasks

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.first)

    def take(self, rows: NDArray[Any] | slice) -> PairRows:
        """Select some of the rows."""
        return PairRows(
            self.task, self.language, self.first[rows], self.second[rows], self.labels[rows]
        )

    def batches(self, size: int, order: NDArray[np.int64] | None = None) -> Iterator[PairRows]:
        """Yield the rows in a given order, `size` at a time."""
        rows = self if order is None else self.take(order)
        return (rows.take(slice(begin, begin + size)) for begin in range(0, len(rows), size))

    def held_out(self, share: float) -> tuple[PairRows, PairRows]:
        """Split into rows to train on and held-out rows, so that no answer or premise is in both.

        An answer or premise may occur in several rows.
        """
        keys = (self.first if self.task == "nli" else self.second).astype(np.uint64)
        # 24 bits of a multiplicative hash
        mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        held = mixed < share * (1 << 24)
        return self.take(~held), self.take(held)


@dataclass(frozen=True)
class Curve:
    """A learning curve on held-out rows: a measure before training and after each epoch, 0 .. 1."""

    measure: str
    rows: int  # number of held-out rows
    values: tuple[float, ...]

    @property
    def best(self) -> int:
        """The epoch that was kept; 0: the initial weights."""
        return int(np.argmax(self.values))

    def __str__(self) -> str:
        return " ".join(f"{100 * value:.1f}" for value in self.values)


def make_towers(
    model: str | Path,
    folders: Mapping[str, Path],
    output: str | Path,
    settings: TowersSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> list[Curve]:
    """Train towers and a classifier over a finished encoder, and save all of them as a model.

    Vectors are stored in `.<output>.work` until the run is complete; the same call resumes an
    interrupted run.

    Args:
        model: Directory, name or hub id of the encoder, any model that `st_paragram.load` opens.
        folders: Task ("qa", "response", "nli") -> folder of `LANG.tsv` files (see `task_files`).
        output: Output model directory.
        settings: Settings of the training.
        name: The encoder's name for the card; by default the directory's name.
        overwrite: Replace an existing model directory.

    Returns:
        Learning curves on held-out rows.
    """
    settings, output, found = settings or TowersSettings(), Path(output), find(model)
    check_free(output, overwrite)
    files = [
        (task, *file)
        for task, folder in folders.items()
        for file in task_files(folder, task).items()
    ]
    encoder = st_paragram.load(found)
    torch.manual_seed(settings.seed)
    made = EncoderWithTowers.over(encoder)
    with work_folder(output, check=partial(check_free, output, overwrite)) as work:
        rows = read_rows(files, work / "texts.txt")
        curves = train_towers(
            made, rows, vectors_of(work / "texts.txt", encoder, fingerprint(found), work), settings
        )
        card = towers_card(output.name, name or found.name, made, rows, curves)
        load_save.save(made, output, card, overwrite)
    return curves


def read_rows(files: Sequence[tuple[str, str, Path]], texts: Path) -> list[PairRows]:
    """Read the rows of files (task, language, path), and write each distinct text once: line i is
    text i.
    """
    numbers: dict[bytes, int] = {}  # keys are 16-byte hashes of texts
    with atomic(texts) as output:

        def number(text: str) -> int:
            line = text.encode()
            key = hashlib.blake2b(line, digest_size=16).digest()
            if key not in numbers:
                numbers[key] = len(numbers)
                output.write(line + b"\n")
            return numbers[key]

        found = []
        for task, language, path in files:
            cells = [
                (number(a), number(b), label)
                for rows in read_texts(path, task)
                for a, b, _, label in rows
            ]
            found.append(PairRows(task, language, *np.array(cells, np.int64).T.copy()))
    return found


def vectors_of(
    texts: Path, encoder: SentenceTransformer, identity: str, folder: Path
) -> NDArray[np.float16]:
    """Compute unit vectors of all lines of a file, once, in a folder; an interrupted run is
    resumed.

    `identity` identifies the encoder.
    """
    output = folder / f"vectors-{digest(content_digest(texts), identity)}.npy"
    if not output.exists():
        embed_files(encoder, texts, output, normalize=True, dtype="float16")
    return cast("NDArray[np.float16]", np.load(output, mmap_mode="r"))


def train_towers(
    model: EncoderWithTowers,
    rows: Sequence[PairRows],
    stored: NDArray[np.float16],
    settings: TowersSettings,
) -> list[Curve]:
    """Train towers on questions and responses, and the classifier on inference, if there are rows
    for them.

    Args:
        model: Model with the towers and classifier to train; its encoder is not used.
        rows: Rows of all tasks.
        stored: The encoder's vectors of the texts, (texts, D).
        settings: Settings of the training.

    Returns:
        The learning curves.
    """
    router, heads, device = cast("Router", model[-1]), model.heads, model.device

    def vectors(numbers: NDArray[np.int64]) -> Tensor:
        return F.normalize(torch.from_numpy(stored[numbers].astype(np.float32)).to(device), dim=1)

    def ranking(batch: PairRows) -> Tensor:
        questions = through(router, QUERY, vectors(batch.first))
        answers = through(router, DOCUMENT, vectors(batch.second))
        equal = sharing(torch.from_numpy(batch.first), torch.from_numpy(batch.second)).to(device)
        return ranking_loss(questions, answers, settings.scale, 0.0, equal)

    def answers_found(held: PairRows) -> float:
        """Return the share of questions whose answer is nearest among all answers of the rows."""
        answers = np.unique(held.second)
        among = through(router, DOCUMENT, vectors(answers))
        nearest = (through(router, QUERY, vectors(held.first)) @ among.T).argmax(1).cpu().numpy()
        return float((answers[nearest] == held.second).mean())

    def logits(batch: PairRows, dropout: float = 0.0) -> Tensor:
        return heads.logits(vectors(batch.first), vectors(batch.second), dropout)

    def entropy(batch: PairRows) -> Tensor:
        return F.cross_entropy(
            logits(batch, settings.nli_dropout), torch.from_numpy(batch.labels).to(device)
        )

    def labels_found(held: Sequence[PairRows]) -> float:
        parts = [part for each in held for part in each.batches(_CANDIDATES)]
        return sum(
            int((logits(each).argmax(1).cpu().numpy() == each.labels).sum()) for each in parts
        ) / _count(held)

    curves = []
    paired, inference = (
        [each for each in rows if (each.task in _PAIRED) == kind] for kind in (True, False)
    )
    if paired:
        train, held = _held_out(paired, settings.held_out)
        looked_at = [each.take(slice(_CANDIDATES)) for each in held]
        extent = (settings.epochs, settings.learning_rate)
        values = _fit(
            router, train, *extent, settings, ranking, lambda: fmean(map(answers_found, looked_at))
        )
        curves.append(Curve("answers found in held-out rows", _count(looked_at), values))
    if inference:
        train, held = _held_out(inference, settings.held_out)
        extent = (settings.nli_epochs, settings.nli_learning_rate)
        values = _fit(
            heads.classifier, train, *extent, settings, entropy, lambda: labels_found(held)
        )
        curves.append(Curve("correct inference labels", _count(held), values))
    model.trained_on({each.task for each in rows})
    return curves


def _held_out(rows: Sequence[PairRows], share: float) -> tuple[list[PairRows], list[PairRows]]:
    """Split the rows of each language into rows to train on and held-out rows, where those are more
    than one.
    """
    train, held = zip(*(each.held_out(share) for each in rows), strict=True)
    if not (some := [each for each in held if len(each) > 1]):
        seen = f"too few rows to hold out {share:.0%} of them"
        # vectors are kept
        raise SettingsError(f"{rows[0].task}: {seen}; give more, or a larger --held-out")
    return list(train), some


def _count(rows: Sequence[PairRows]) -> int:
    return sum(map(len, rows))


def _fit(
    module: nn.Module,
    train: Sequence[PairRows],
    epochs: int,
    learning_rate: float,
    settings: TowersSettings,
    loss: Callable[[PairRows], Tensor],
    score: Callable[[], float],
) -> tuple[float, ...]:
    """Train a module with AdamW, keep the best epoch, and return the scores before training and
    after each epoch.

    Each batch has one task and language; batches are in random order, and batches that are too
    small are skipped.
    """
    rng, size, score = (
        np.random.default_rng(settings.seed),
        settings.batch_size,
        torch.inference_mode()(score),
    )
    optimizer = torch.optim.AdamW(module.parameters(), learning_rate, weight_decay=_WEIGHT_DECAY)
    steps = epochs * sum(-(-len(each) // size) for each in train)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
    values, best = [score()], copy.deepcopy(module.state_dict())
    with tqdm(total=steps, unit=" steps", desc="training") as bar:
        for _ in range(epochs):
            batches = [
                part for each in train for part in each.batches(size, rng.permutation(len(each)))
            ]
            batches = [each for each in batches if len(each) >= _FEWEST] or batches
            for number in rng.permutation(len(batches)):
                optimizer.zero_grad()
                loss(batches[number]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
                bar.update()
            values.append(score())
            if values[-1] > max(values[:-1]):  # the first of equal epochs, as `Curve.best` says
                best = copy.deepcopy(module.state_dict())
    module.load_state_dict(best)
    return tuple(values)
