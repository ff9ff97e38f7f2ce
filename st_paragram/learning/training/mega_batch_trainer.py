"""Mega-batch training (EMNLP 2022): negatives are mined with frozen parameters, and then stepped on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.core.native import kernels
from st_paragram.core.pair_store import PairStore
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError, StoreError
from st_paragram.learning.losses.hardest_negatives import Precision, hardest_negatives
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.modules.flat_features import flat_features
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.compiled_adam import CompiledAdam
from st_paragram.learning.training.dataset_store import store_of
from st_paragram.learning.training.mega_batch import COLUMNS, MegaBatch, MegaBatchTexts, MinedMegaBatch, mega_batches
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.learning.training.teacher import Teacher, open_vectors
from st_paragram.learning.training.trainer import StoreTrainer

logger = logging.getLogger(__name__)

_DEFAULTS = TrainingSettings()
_MINING_BATCH = 8192  # sentences whose means torch takes at a time


@dataclass
class MegaBatchTrainingArguments(StoreTrainingArguments):
    """sentence-transformers' training arguments with those of the mega-batch procedure; defaults as in EMNLP 2022.

    Args:
        megabatch_size: Largest M, in mini-batches; the paper tunes over 60, 100, 140.
        anneal_interval: Mini-batches after which M grows by one; 0 starts with the largest M.
        negatives_from_both_sides: Look for negatives among all sentences of the mega-batch (paraphrases), instead of
            the opposite side's only (bitext).
        mask_duplicates: Pairs that share a text are never each other's negatives. False is the authors' behavior.
        scramble: Probability that a sentence's ids are put in random order, see `mega_batch.scrambled`.
        compiled_step: Use the compiled training step where it can be used (CPU, no clipping, no weight decay).
        mining_precision: What similarities are computed in while negatives are sought: "auto" (the fastest that the
            device has) or "float32".
        teacher: File of a teacher's vectors of the pairs, see `teacher.open_vectors`; empty for none.
        teacher_weight: Weight of the distance from the teacher's vectors in the loss.

    Example:
        >>> from st_paragram import MegaBatchTrainingArguments
        >>> MegaBatchTrainingArguments("checkpoints", num_train_epochs=10, megabatch_size=20).megabatch_size
        20
    """

    megabatch_size: int = _DEFAULTS.megabatch_size
    anneal_interval: int = _DEFAULTS.anneal_interval
    negatives_from_both_sides: bool = _DEFAULTS.negatives == "both"
    mask_duplicates: bool = _DEFAULTS.mask_duplicates
    scramble: float = 0.0
    compiled_step: bool = True
    mining_precision: str = _DEFAULTS.mining_precision
    teacher: str = _DEFAULTS.teacher
    teacher_weight: float = _DEFAULTS.teacher_weight

    def __post_init__(self) -> None:
        """Refuse what the settings of the same names refuse."""
        checked = ("megabatch_size", "anneal_interval", "mining_precision", "teacher", "teacher_weight")
        TrainingSettings(**{name: getattr(self, name) for name in checked})
        if not 0 <= self.scramble <= 1:
            raise SettingsError(f"scramble is {self.scramble}; it must be at least 0 and at most 1")
        super().__post_init__()


class MegaBatchTrainer(StoreTrainer):
    """Train on pairs: mine a mega-batch's negatives with frozen parameters, then make its optimizer steps.

    Source: EMNLP 2022, sections 2 and 3. The mini-batches, the mega-batches and the permutation of an epoch depend on
    the settings and the seed alone. Mining happens in the first step of a mega-batch, so it sees the parameters as the
    last step left them. A checkpoint at any step carries the mined rows and resumes to the bit.

    On a CPU the whole step is one compiled call where that can be (see `CompiledAdam`); otherwise it is torch's, with
    dense Adam. The log says which it is.

    Example:
        >>> from datasets import Dataset
        >>> from st_paragram import MegaBatchTrainer, MegaBatchTrainingArguments, load
        >>> pairs = Dataset.from_dict({"english": ["a house", "two cats"], "spanish": ["una casa", "dos gatos"]})
        >>> arguments = MegaBatchTrainingArguments("checkpoints", num_train_epochs=1, use_cpu=True, disable_tqdm=True)
        >>> result = MegaBatchTrainer(load("p-sp-es", device="cpu"), arguments, train_dataset=pairs).train()
    """

    training_args_class = MegaBatchTrainingArguments
    args: MegaBatchTrainingArguments

    def __init__(
        self,
        model: SentenceTransformer,
        args: MegaBatchTrainingArguments | None = None,
        train_dataset: PairStore | Dataset | DatasetDict | None = None,
        loss: nn.Module | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Set up a training run.

        Args:
            model: A pipeline that begins with `TokenEmbedding` (or `SentencePieceEmbedding`).
            args: Arguments of the run.
            train_dataset: The pairs: two columns of texts, in one data set or several, which are tokenized once into a
                store of the cache; or a pair store, the ids of both sides being rows of one table.
            loss: Takes four columns (s, t, negative of s, negative of t); `MarginHardNegativeLoss` by default.
            kwargs: Further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and `callbacks`.
        """
        args = args or MegaBatchTrainingArguments("checkpoints")
        if not isinstance(model[0], TokenEmbedding):
            seen = f"MegaBatchTrainer trains models that begin with TokenEmbedding, not {type(model[0]).__name__}"
            raise SettingsError(f"{seen}; train this one by MarginHardNegativeLoss and SentenceTransformerTrainer")
        self.embedding: TokenEmbedding = model[0]
        store = train_dataset
        if not isinstance(store, PairStore):
            store = store_of(train_dataset, self.embedding.tokenizer)
        _check(store, self.embedding)
        loss = loss or MarginHardNegativeLoss(model)
        vectors = open_vectors(args.teacher, store) if args.teacher else None
        if vectors is not None and type(loss) is not MarginHardNegativeLoss:
            raise SettingsError(f"a teacher goes with MarginHardNegativeLoss, not with {type(loss).__name__}")
        self._schedule: Iterator[MegaBatch] | None = None
        self._current: MinedMegaBatch | None = None
        self._compiled: CompiledAdam | None = None
        self._reader = ThreadPoolExecutor(1, "next mega-batch")
        self._read_ahead: Future[MegaBatchTexts] | None = None
        super().__init__(model, args, store, loss, **kwargs)
        dim = model.get_embedding_dimension() or 0
        self._teacher = None if vectors is None else Teacher(vectors, args.teacher_weight, dim, args.seed, model.device)
        self.precision = Precision(args.mining_precision).on(args.device)

    @property
    def batches_per_epoch(self) -> int:
        """Mini-batches of an epoch, the last one with the pairs that remain."""
        return -(-len(self.store) // self.args.train_batch_size)

    def train(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Train as `StoreTrainer` does."""
        self._schedule = self._current = self._compiled = None
        try:
            return super().train(*args, **kwargs)
        finally:
            self._read_ahead = None
            if self._compiled is not None:
                self._compiled.catch_up()

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Make the compiled step, or the optimizer that `args.optim` names."""
        args = self.args
        obstacle = CompiledAdam.obstacle(self.model, self.loss, args.weight_decay, args.max_grad_norm)
        if not args.compiled_step:
            obstacle = "compiled_step is False"
        how = f"torch ({obstacle})" if obstacle else f"compiled ({kernels().instructions()})"
        threads = counted(torch.get_num_threads(), "thread")
        logger.info(f"step: {how}; mining: {self.precision.value}; device: {args.device}, {threads}")
        if obstacle:
            return super().create_optimizer(model) if model is not None else super().create_optimizer()
        table: Any = self.embedding.embedding.weight
        betas = args.adam_beta1, args.adam_beta2
        self._compiled = CompiledAdam(table, args.learning_rate, betas, args.adam_epsilon)
        self.optimizer = self._compiled
        return self._compiled

    # Steps.

    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Mine if the step opens a mega-batch, then make the step on its pairs and negatives."""
        size = self.args.train_batch_size
        mined = self._mined(self._mega_batch_of(step))
        texts, start = mined.texts, (step % self.batches_per_epoch - mined.texts.mega.start) * size
        columns = mined.columns[:, start : start + size]
        targets = None
        if self._teacher is not None:
            targets = self._teacher.targets(texts.rows[start : start + size], len(self.store))
        if self._compiled is not None:
            return self._compiled_step(self._compiled, texts, columns, targets), columns.shape[1]
        self.model.train()
        margin_hard_negative, features = cast("Any", self.loss), [self._features(texts, rows) for rows in columns]
        if self._teacher is None or targets is None:
            loss = margin_hard_negative(features)
            loss.backward()
        else:
            s, t, of_s, of_t = margin_hard_negative.embed(features)
            loss = margin_loss(s, t, of_s, of_t, margin_hard_negative.margin)
            loss = loss + self._teacher.loss(torch.cat([s, t]), torch.from_numpy(targets).to(s.device))
            loss.backward()
            self._teacher.step()
        return loss.detach(), columns.shape[1]

    def _compiled_step(
        self,
        compiled: CompiledAdam,
        texts: MegaBatchTexts,
        columns: NDArray[np.int64],
        targets: NDArray[np.float32] | None,
    ) -> Tensor:
        teacher, taught = self._teacher, list[float]()

        def teach(embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
            assert teacher is not None
            assert targets is not None
            term, gradient = teacher.learn(embeddings, targets)
            taught.append(term)
            return gradient

        margin, dropout = cast("MarginHardNegativeLoss", self.loss).margin, self.embedding.dropout
        further = None if teacher is None else teach
        loss = compiled.make_step(texts.ids, texts.offsets, columns, margin, dropout, self.args.seed, further)
        return torch.tensor(loss + sum(taught))

    def _features(self, texts: MegaBatchTexts, sentences: NDArray[np.int64]) -> dict[str, Any]:
        return dict(self._prepare_inputs(flat_features(*texts.take(sentences))))

    # Mining.

    def _mega_batch_of(self, step: int) -> MegaBatch:
        """The mega-batch of a step; the schedule is followed from the start, so that resuming needs no state."""
        epoch, index = divmod(step, self.batches_per_epoch)
        if self._schedule is None:
            self._schedule = mega_batches(self.batches_per_epoch, self.args.megabatch_size, self.args.anneal_interval)
            self._scheduled, self._following = next(self._schedule), next(self._schedule)
        while (self._scheduled.epoch, self._scheduled.stop) <= (epoch, index):
            self._scheduled, self._following = self._following, next(self._schedule)
        return self._scheduled

    def _mined(self, mega: MegaBatch) -> MinedMegaBatch:
        """The mega-batch with its negatives, mined at its first step; the next one's texts are read meanwhile."""
        if self._current is None or self._current.texts.mega != mega:
            ahead, self._read_ahead = self._read_ahead, None
            texts = ahead.result() if ahead is not None else None
            self._current = self._mine(texts if texts is not None and texts.mega == mega else self._read(mega))
            self._read_ahead = self._reader.submit(self._read, self._following)
        return self._current

    def _read(self, mega: MegaBatch) -> MegaBatchTexts:
        args = self.args
        return MegaBatchTexts.read(self.store, mega, args.train_batch_size, args.seed, args.scramble)

    @torch.no_grad()
    def _mine(self, texts: MegaBatchTexts) -> MinedMegaBatch:
        """Choose the negatives of a mega-batch with the present parameters, dropout off."""
        n, both = texts.pairs, self.args.negatives_from_both_sides
        first, second = self._embed(texts).split(n)
        labels = None
        if self.args.mask_duplicates:
            first_labels, second_labels = (torch.from_numpy(labels).to(first.device) for labels in texts.labels())
            labels = (first_labels, second_labels)
        found = hardest_negatives(first, second, labels, both_sides=both, precision=self.precision)
        of_s, of_t = (negatives.cpu().numpy() for negatives in found)
        return MinedMegaBatch(texts, np.stack([np.arange(n), np.arange(n, 2 * n), of_s if both else of_s + n, of_t]))

    def _embed(self, texts: MegaBatchTexts) -> Tensor:
        """Embeddings of all sentences, float (2n, D)."""
        if self._compiled is not None:
            return self._compiled.embed(texts.ids, texts.offsets)
        self.model.eval()
        # Other models than averages pad texts: those of like length together, as many as the step has at once.
        averaging = averaging_embedding(self.model) is not None
        size = _MINING_BATCH if averaging else len(COLUMNS) * self.args.train_batch_size
        order = np.argsort(np.diff(texts.offsets), kind="stable")
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        vectors = torch.cat([self.model(self._features(texts, part))["sentence_embedding"] for part in parts])
        return vectors[torch.from_numpy(np.argsort(order)).to(vectors.device)]

    # What is logged, looked at and kept.

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log M, and how far the teacher is, with the loss."""
        if "loss" in logs and self._current is not None:
            logs["megabatch_size"] = self._current.texts.mega.size
            if self._teacher is not None:
                logs["teacher"] = self._teacher.mean_distance()
        super().log(logs, start_time)

    def up_to_date(self) -> AbstractContextManager[None]:
        """Within the block the weights are as dense Adam would have left them."""
        return nullcontext() if self._compiled is None else self._compiled.caught_up()

    def _load_best_model(self) -> None:
        if self._compiled is not None:
            self._compiled.catch_up()  # or the last step's sleepers would move the best rows later
        super()._load_best_model()

    def save_state(self, folder: Path) -> None:
        """Write the mined rows of the present mega-batch and the teacher's map."""
        if self._current is not None:
            self._current.save(folder)
        if self._teacher is not None:
            self._teacher.save(folder)

    def load_state(self, folder: Path) -> None:
        """Read back what `save_state` wrote."""
        args = self.args
        self._current = MinedMegaBatch.load(folder, self.store, args.train_batch_size, args.seed, args.scramble)
        if self._teacher is not None:
            self._teacher.load(folder)


def _check(store: PairStore, embedding: TokenEmbedding) -> None:
    """Refuse a store that cannot be mined, or is of another vocabulary than the model."""
    if len(store) < 2:
        raise StoreError(f"{store.path}: {len(store)} pair; a negative needs at least two pairs")
    first, second = store.tokenizers
    if not first.shares_rows(second):
        raise StoreError(
            f"{store.path}: the sides have separate tokenizers and rows; mega-batches need ids of one table, so "
            "prepare the pairs again"
        )
    if not (first.shares_rows(embedding.tokenizer) and second.shares_rows(embedding.tokenizer)):
        raise SettingsError(
            f"{store.path}: the model's tokenizer is not the store's; build the model with store.tokenizer()"
        )
