"""Training of towers and an inference classifier on the vectors of a finished encoder.

The tasks are those of ACL 2020, section 3.1. The encoder's vectors are computed once and never
change, so an epoch takes seconds. Held-out rows are scored after each epoch, and the best epoch is
kept; if no epoch improves the score, the initial weights are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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

import st_paragram
from st_paragram.core.arrays import Integers
from st_paragram.core.extras import installed_version
from st_paragram.core.files import digest, file_digest
from st_paragram.core.formatting import listed, markdown_table
from st_paragram.core.model_directory.card import Card, blocks, render
from st_paragram.core.model_directory.configuration import check_free, fingerprint
from st_paragram.core.model_directory.find import find
from st_paragram.errors import SettingsError, one_line
from st_paragram.families.muse.losses import ranking_loss, shared_texts
from st_paragram.families.muse.pair_rows import PairRows, read_rows, vectors_of
from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
from st_paragram.families.muse.settings import TASK_NAMES, TowersSettings
from st_paragram.families.muse.tasks import task_files
from st_paragram.families.muse.towers import DOCUMENT, QUERY, through
from st_paragram.learning.models import load_save
from st_paragram.learning.models.card import citation
from st_paragram.learning.papers import MUSE
from st_paragram.tools.work import work_folder

_FEWEST = 16  # minimum pairs per batch: fewer pairs give too few negatives
_CANDIDATES = 4096  # held-out rows scored per language, or at a time for inference
_WEIGHT_DECAY = 0.01

_RETRIEVAL = """\
Questions and answers:

```python
questions = model.encode_query(["who wrote it?"])
answers = model.encode_document(["She wrote it in 1843."])
print(model.similarity(questions, answers))
```"""
_CLASSIFY = """\
`model.classify(premises, hypotheses)` gives the probabilities of entailment, neutral and
contradiction, if the model was opened by `st_paragram.load`."""


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
    settings = settings or TowersSettings()
    output = Path(output)
    folder = find(model)
    check_free(output, overwrite)
    files = []
    for task, task_folder in folders.items():
        for language, path in task_files(task_folder, task).items():
            files.append((task, language, path))
    encoder = st_paragram.load(folder)
    torch.manual_seed(settings.seed)
    with_towers = EncoderWithTowers.over(encoder)
    with work_folder(output, check=partial(check_free, output, overwrite)) as work:
        sources = [(task, language, file_digest(path)) for task, language, path in files]
        texts = work / f"texts-{digest(sources)}.txt"
        rows = read_rows(files, texts)
        vectors = vectors_of(texts, encoder, fingerprint(folder), work)
        curves = train_towers(with_towers, rows, vectors, settings)
        card = _card(output.name, name or folder.name, rows, curves)
        load_save.save(with_towers, output, card, overwrite)
    return curves


def train_towers(
    model: EncoderWithTowers,
    rows: Sequence[PairRows],
    stored: NDArray[np.float16],
    settings: TowersSettings,
) -> list[Curve]:
    """Train towers on questions and responses, and the classifier on inference.

    A part without rows is not trained.

    Args:
        model: Model with the towers and classifier to train; its encoder is not used.
        rows: Rows of all tasks.
        stored: The encoder's vectors of the texts, (texts, D).
        settings: Settings of the training.

    Returns:
        The learning curves.
    """

    def vectors(numbers: Integers) -> Tensor:
        tensor = torch.from_numpy(stored[numbers].astype(np.float32))
        return F.normalize(tensor.to(model.device), dim=1)

    curves = []
    retrieval = [part for part in rows if part.task != "nli"]
    if retrieval:
        curves.append(_train_retrieval(model, retrieval, vectors, settings))
    inference = [part for part in rows if part.task == "nli"]
    if inference:
        curves.append(_train_classifier(model, inference, vectors, settings))
    model.trained_on({part.task for part in rows})
    return curves


def _train_retrieval(
    model: EncoderWithTowers,
    rows: Sequence[PairRows],
    vectors: Callable[[Integers], Tensor],
    settings: TowersSettings,
) -> Curve:
    """Train the towers to find the answers of questions."""
    router = cast("Router", model[-1])
    train, held_out = _split(rows, settings.held_out)
    held_out = [part.take(slice(_CANDIDATES)) for part in held_out]

    def loss(batch: PairRows) -> Tensor:
        questions = through(router, QUERY, vectors(batch.first))
        answers = through(router, DOCUMENT, vectors(batch.second))
        equal = shared_texts(torch.from_numpy(batch.first), torch.from_numpy(batch.second))
        equal = equal.to(model.device)
        return ranking_loss(questions, answers, settings.scale, margin=0.0, equal=equal)

    def accuracy(part: PairRows) -> float:
        """Return the share of questions whose answer is nearest among all answers of the rows."""
        answers = np.unique(part.second)
        questions = through(router, QUERY, vectors(part.first))
        candidates = through(router, DOCUMENT, vectors(answers))
        nearest = (questions @ candidates.T).argmax(1).cpu().numpy()
        return float((answers[nearest] == part.second).mean())

    def score() -> float:
        return fmean(accuracy(part) for part in held_out)

    scores = _fit(
        router,
        train,
        loss,
        score=score,
        epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        settings=settings,
    )
    return Curve("answers found in held-out rows", _count(held_out), scores)


def _train_classifier(
    model: EncoderWithTowers,
    rows: Sequence[PairRows],
    vectors: Callable[[Integers], Tensor],
    settings: TowersSettings,
) -> Curve:
    """Train the classifier of pairs."""
    heads = model.heads
    train, held_out = _split(rows, settings.held_out)

    def loss(batch: PairRows) -> Tensor:
        logits = heads.logits(vectors(batch.first), vectors(batch.second), settings.nli_dropout)
        return F.cross_entropy(logits, torch.from_numpy(batch.labels).to(model.device))

    def score() -> float:
        correct = 0
        for part in held_out:
            for batch in part.batches(_CANDIDATES):
                logits = heads.logits(vectors(batch.first), vectors(batch.second))
                correct += int((logits.argmax(1).cpu().numpy() == batch.labels).sum())
        return correct / _count(held_out)

    scores = _fit(
        heads.classifier,
        train,
        loss,
        score=score,
        epochs=settings.nli_epochs,
        learning_rate=settings.nli_learning_rate,
        settings=settings,
    )
    return Curve("correct inference labels", _count(held_out), scores)


def _split(rows: Sequence[PairRows], share: float) -> tuple[list[PairRows], list[PairRows]]:
    """Split the rows of each language into rows to train on and held-out rows.

    Held-out rows of a language are used if there are more than one.
    """
    train = []
    held_out = []
    for part in rows:
        part_train, part_held_out = part.held_out(share)
        train.append(part_train)
        if len(part_held_out) > 1:
            held_out.append(part_held_out)
    if not held_out:
        # vectors are kept
        raise SettingsError(
            f"{rows[0].task}: too few rows to hold out {share:.0%} of them; give more, or a larger"
            " --held-out"
        )
    return train, held_out


def _count(rows: Sequence[PairRows]) -> int:
    return sum(len(part) for part in rows)


def _fit(
    module: nn.Module,
    rows: Sequence[PairRows],
    loss: Callable[[PairRows], Tensor],
    score: Callable[[], float],
    epochs: int,
    learning_rate: float,
    settings: TowersSettings,
) -> tuple[float, ...]:
    """Train a module with AdamW and keep the best epoch.

    Each batch has one task and language. Returns the scores before training and after each epoch.
    """
    random = np.random.default_rng(settings.seed)
    score = torch.inference_mode()(score)
    optimizer = torch.optim.AdamW(module.parameters(), learning_rate, weight_decay=_WEIGHT_DECAY)
    steps = epochs * sum(-(-len(part) // settings.batch_size) for part in rows)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
    scores = [score()]
    best = copy.deepcopy(module.state_dict())
    with tqdm(total=steps, unit=" steps", desc="training") as bar:
        for _ in range(epochs):
            for batch in _shuffled_batches(rows, settings.batch_size, random):
                optimizer.zero_grad()
                loss(batch).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
                bar.update()
            scores.append(score())
            if scores[-1] > max(scores[:-1]):  # the first of equal epochs, as for `Curve.best`
                best = copy.deepcopy(module.state_dict())
    module.load_state_dict(best)
    return tuple(scores)


def _shuffled_batches(
    rows: Sequence[PairRows], size: int, random: np.random.Generator
) -> list[PairRows]:
    """Return an epoch's batches in random order; batches that are too small are skipped."""
    batches: list[PairRows] = []
    for part in rows:
        batches += part.take(random.permutation(len(part))).batches(size)
    large = [batch for batch in batches if len(batch) >= _FEWEST]
    batches = large or batches
    return [batches[number] for number in random.permutation(len(batches))]


def _card(name: str, encoder: str, rows: Sequence[PairRows], curves: Sequence[Curve]) -> str:
    """Make the card of towers trained on these rows over a finished encoder of this name."""
    encoder = one_line(encoder, 200).replace("`", "'")
    trained = {part.task for part in rows}
    tasks = listed([text for task, text in TASK_NAMES.items() if task in trained])
    sizes = [(TASK_NAMES[part.task], part.language, f"{len(part):,}") for part in rows]
    scores = [(curve.measure, f"{curve.rows:,}", str(curve), str(curve.best)) for curve in curves]
    training = blocks(
        f"Trained by `st-paragram towers`, st_paragram {installed_version()}, on these rows:",
        markdown_table(("task", "language", "rows"), sizes, left=2),
    )
    held_out = markdown_table(("measure", "rows", "% before and after each epoch", "kept"), scores)
    card = Card(
        name=one_line(name, 100),
        summary=(
            f"Sentence embeddings of `{encoder}`, scaled to length 1, with towers and heads trained"
            f" on {tasks} as in multilingual USE (Yang et al., ACL 2020). The encoder itself was"
            " not changed."
        ),
        stock=False,
        note=blocks(_RETRIEVAL, _CLASSIFY if "nli" in trained else ""),
        license="other",
        license_name="terms-of-the-encoder-and-the-text",
        terms=(
            f"The encoder keeps the terms stated in the model card of `{encoder}`; each text keeps"
            " its own license."
        ),
        sections=(("Training", training), ("On held-out rows", held_out), citation(MUSE)),
    )
    return render(card)
