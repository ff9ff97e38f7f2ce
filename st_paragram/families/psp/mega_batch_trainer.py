"""Mega-batch training (EMNLP 2022): negatives are mined with frozen parameters, then used in
training steps.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.core.formatting import counted
from st_paragram.core.native import kernels
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError, StoreError
from st_paragram.families.psp.compiled_adam import CompiledAdam
from st_paragram.families.psp.dataset_store import store_of
from st_paragram.families.psp.hardest_negatives import Precision, hardest_negatives
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.families.psp.mega_batch import MegaBatch, MegaBatchTexts, mega_batches
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.families.psp.teacher import Teacher
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.modules.flat_features import flat_features
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.training.trainer import StoreTrainer, StoreTrainingArguments

logger = logging.getLogger(__name__)

_DEFAULTS = TrainingSettings()
_MINING_BATCH = 8192  # sentences averaged by torch at a time
_FILE = "mega_batch.npz"  # in a checkpoint


@dataclass
class MegaBatchTrainingArguments(StoreTrainingArguments):
    """sentence-transformers' training arguments with those of the mega-batch procedure; defaults as
    in EMNLP 2022.

    Args:
        megabatch_size: Maximum M, in mini-batches; the paper tunes over 60, 100, 140.
        anneal_interval: Mini-batches between increments of M; 0: maximum M from the start.
        negatives_from_both_sides: Search all sentences of the mega-batch for negatives
            (paraphrases), instead of only the opposite side (bitext).
        mask_duplicates: Pairs that share a text are never each other's negatives. False: as in the
            authors' code.
        scramble: Probability of shuffling a sentence's ids, see `mega_batch.scrambled`.
        compiled_step: Use the compiled training step if possible (CPU, no clipping, no weight
            decay).
        mining_precision: Number type of similarities in the search for negatives: "auto" (the
            fastest type of the device) or "float32".
        teacher: File of teacher vectors for the pairs, see `Teacher`; empty for none.
        teacher_weight: Weight of the teacher loss.

    Example:
        >>> from st_paragram import MegaBatchTrainingArguments
        >>> MegaBatchTrainingArguments("checkpoints", num_train_epochs=10,
        ...     megabatch_size=20).megabatch_size
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
        """Check values like the settings of the same names; `scramble` needs an encoder that uses
        token order.
        """
        checked = (
            "megabatch_size",
            "anneal_interval",
            "scramble",
            "mining_precision",
            "teacher",
            "teacher_weight",
        )
        TrainingSettings(encoder="blstm", **{name: getattr(self, name) for name in checked})
        super().__post_init__()


class MegaBatchTrainer(StoreTrainer):
    """Train on pairs: mine a mega-batch's negatives with frozen parameters, then make its optimizer
    steps.

    Source: EMNLP 2022, sections 2 and 3. The mini-batches, the mega-batches and the permutation of
    an epoch depend only on the settings and the seed. Mining happens in the first step of a
    mega-batch, with the parameters after the previous step. A checkpoint at any step contains the
    mined rows, so a resumed run gives identical results.

    On a CPU, the whole step is one compiled call if possible (see `CompiledAdam`); otherwise, it
    runs in torch with dense Adam. The log shows which.

    Example:
        >>> from datasets import Dataset
        >>> from st_paragram import MegaBatchTrainer, MegaBatchTrainingArguments, load
        >>> pairs = Dataset.from_dict({"english": ["a house", "two cats"], "spanish": ["una casa",
        ...     "dos gatos"]})
        >>> arguments = MegaBatchTrainingArguments("checkpoints", num_train_epochs=1, use_cpu=True,
        ...     disable_tqdm=True)
        >>> result = MegaBatchTrainer(load("p-sp-es", device="cpu"), arguments,
        ...     train_dataset=pairs).train()
    """

    training_args_class = MegaBatchTrainingArguments
    args: MegaBatchTrainingArguments
    _current: MegaBatchTexts | None = None
    _compiled: CompiledAdam | None = None

    def __init__(
        self,
        model: SentenceTransformer,
        args: MegaBatchTrainingArguments | None = None,
        train_dataset: PairStore | Dataset | DatasetDict | None = None,
        loss: nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        """Set up a training run.

        Args:
            model: A pipeline that begins with `TokenEmbedding` (or `SentencePieceEmbedding`).
            args: Training arguments.
            train_dataset: The pairs: one or several data sets with two text columns, which are
                tokenized once into a store in the cache; or a pair store whose two sides share
                their ids.
            loss: Loss on four columns (s, t, negative of s, negative of t); by default
                `MarginHardNegativeLoss`.
            kwargs: Further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and
                `callbacks`.
        """
        args = args or MegaBatchTrainingArguments("checkpoints")
        if not isinstance(model[0], TokenEmbedding):
            seen = (
                "MegaBatchTrainer trains models that begin with TokenEmbedding, not"
                f" {type(model[0]).__name__}"
            )
            raise SettingsError(
                f"{seen}; use MarginHardNegativeLoss with SentenceTransformerTrainer"
            )
        self.embedding: TokenEmbedding = model[0]
        tokenizer = self.embedding.tokenizer
        store = (
            train_dataset
            if isinstance(train_dataset, PairStore)
            else store_of(train_dataset, tokenizer)
        )
        _check(store, self.embedding)
        loss = loss or MarginHardNegativeLoss(model)
        self._teacher: Teacher | None = None
        if args.teacher:
            if type(loss) is not MarginHardNegativeLoss:
                raise SettingsError(
                    f"a teacher needs MarginHardNegativeLoss, not {type(loss).__name__}"
                )
            dim = model.get_embedding_dimension() or 0
            self._teacher = Teacher(
                args.teacher, store, args.teacher_weight, dim, args.seed, args.device
            )
        super().__init__(model, args, store, loss, **kwargs)
        self.precision = Precision(args.mining_precision).on(args.device)

    @property
    def batches_per_epoch(self) -> int:
        """Number of mini-batches in an epoch; the last has the remaining pairs."""
        return -(-len(self.store) // self.args.train_batch_size)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train like `StoreTrainer`."""
        # Iterated from the start, so that resuming needs no state; each mega-batch with the next,
        # which is read ahead.
        schedule = mega_batches(
            self.batches_per_epoch, self.args.megabatch_size, self.args.anneal_interval
        )
        self._schedule = pairwise(schedule)
        self._scheduled, self._following = next(self._schedule)
        self._current, self._compiled = None, None
        self._read_ahead: Future[MegaBatchTexts] | None = None
        with ThreadPoolExecutor(1, "next mega-batch") as self._reader:
            try:
                return super().train(*args, **kwargs)
            finally:
                if self._compiled is not None:
                    self._compiled.catch_up()

    def create_optimizer(self, *given: Any) -> torch.optim.Optimizer:
        """Make the compiled step, or the optimizer named by `args.optim`."""
        args = self.args
        obstacle = (
            CompiledAdam.obstacle(self.model, self.loss, args)
            if args.compiled_step
            else "compiled_step is False"
        )
        how = f"torch ({obstacle})" if obstacle else f"compiled ({kernels().instructions()})"
        threads = counted(torch.get_num_threads(), "thread")
        logger.info(
            f"step: {how}; mining: {self.precision.value}; device: {args.device}, {threads}"
        )
        if obstacle:
            return super().create_optimizer(*given)
        table: Any = self.embedding.embedding.weight
        betas = args.adam_beta1, args.adam_beta2
        unknown_ids = self.embedding.tokenizer.unknown_ids
        self._compiled = CompiledAdam(
            table, args.learning_rate, betas, eps=args.adam_epsilon, unknown_ids=unknown_ids
        )
        self.optimizer = self._compiled
        return self._compiled

    # Steps.

    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Mine if the step begins a mega-batch, then make the step on its pairs and negatives."""
        texts, size = self._mined(*divmod(step, self.batches_per_epoch)), self.args.train_batch_size
        start = (step % self.batches_per_epoch - texts.mega.start) * size
        part = slice(start, start + size)
        make = self._torch_step if self._compiled is None else self._compiled_step
        return make(texts, texts.columns[:, part], texts.rows[part]), len(texts.rows[part])

    def _compiled_step(
        self, texts: MegaBatchTexts, columns: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> Tensor:
        taught = 0.0

        def learn(embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
            nonlocal taught
            taught, gradient = cast("Teacher", self._teacher).learn(
                torch.from_numpy(embeddings), rows
            )
            return gradient.numpy()

        settings = (cast("Any", self.loss).margin, self.embedding.dropout, self.args.seed)
        make, further = (
            cast("CompiledAdam", self._compiled).make_step,
            (learn if self._teacher else None),
        )
        return torch.tensor(make(texts.ids, texts.offsets, columns, *settings, further) + taught)

    def _torch_step(
        self, texts: MegaBatchTexts, columns: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> Tensor:
        self.model.train()
        margin_hard_negative, features = (
            cast("Any", self.loss),
            [self._features(texts, column) for column in columns],
        )
        if self._teacher is None:
            loss = margin_hard_negative(features)
            loss.backward()
            return loss.detach()
        s, t, of_s, of_t = margin_hard_negative.embed(features)
        loss, embeddings = (
            margin_loss(s, t, of_s, of_t, margin_hard_negative.margin),
            torch.cat([s, t]),
        )
        taught, gradient = self._teacher.learn(embeddings.detach(), rows)
        (loss + (embeddings * gradient).sum()).backward()
        return loss.detach() + taught

    def _features(self, texts: MegaBatchTexts, sentences: NDArray[np.int64]) -> dict[str, Any]:
        return dict(self._prepare_inputs(flat_features(*texts.take(sentences))))

    # Mining.

    def _mined(self, epoch: int, batch: int) -> MegaBatchTexts:
        """Return the mega-batch of a mini-batch, mined in its first step, while the next texts are
        read.
        """
        while (self._scheduled.epoch, self._scheduled.stop) <= (epoch, batch):
            self._scheduled, self._following = next(self._schedule)
        if self._current is None or self._current.mega != self._scheduled:
            texts = self._read_ahead.result() if self._read_ahead else self._read(self._scheduled)
            self._current = self._mine(texts)
            self._read_ahead = self._reader.submit(self._read, self._following)
        return self._current

    def _read(self, mega: MegaBatch) -> MegaBatchTexts:
        args = self.args
        return MegaBatchTexts.read(
            self.store, mega, args.train_batch_size, args.seed, args.scramble
        )

    @torch.no_grad()
    def _mine(self, texts: MegaBatchTexts) -> MegaBatchTexts:
        """Choose the negatives of a mega-batch with the current parameters, without dropout."""
        n, both = len(texts.rows), self.args.negatives_from_both_sides
        first, second = self._embed(texts).split(n)
        labels = (
            torch.from_numpy(texts.labels).to(first.device).unbind()
            if self.args.mask_duplicates
            else None
        )
        found = hardest_negatives(first, second, labels, both_sides=both, precision=self.precision)
        of_s, of_t = (negatives.cpu().numpy() for negatives in found)
        columns = np.stack([np.arange(n), np.arange(n, 2 * n), of_s if both else of_s + n, of_t])
        return replace(texts, columns=columns)

    def _embed(self, texts: MegaBatchTexts) -> Tensor:
        """Embed all sentences, float (2n, D)."""
        if self._compiled is not None:
            return self._compiled.embed(texts.ids, texts.offsets)
        self.model.eval()
        # Models that do not average pad texts: embed texts of similar length together, as many as
        # in a step.
        averaging = averaging_embedding(self.model) is not None
        size = _MINING_BATCH if averaging else 4 * self.args.train_batch_size
        order = np.argsort(np.diff(texts.offsets), kind="stable")
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        vectors = torch.cat(
            [self.model(self._features(texts, part))["sentence_embedding"] for part in parts]
        )
        return vectors[torch.from_numpy(np.argsort(order)).to(vectors.device)]

    # Logging, evaluation and checkpoints.

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log M, and the distance from the teacher, with the loss."""
        if "loss" in logs and self._current is not None:
            logs["megabatch_size"] = self._current.mega.size
            if self._teacher is not None:
                logs["teacher"] = fmean(self._teacher.distances)
                self._teacher.distances.clear()
        super().log(logs, start_time)

    def up_to_date(self) -> AbstractContextManager[None]:
        """Give the weights the state of dense Adam within the block."""
        return nullcontext() if self._compiled is None else self._compiled.caught_up()

    def _load_best_model(self) -> None:
        if self._compiled is not None:
            # otherwise rows that sleep at the last step would change the best rows later
            self._compiled.catch_up()
        super()._load_best_model()

    def save_state(self, folder: Path) -> None:
        """Write the mined rows of the current mega-batch, whose texts are in the store, and the
        teacher's map.
        """
        if self._current is not None:
            mega = np.array(astuple(self._current.mega))
            np.savez(folder / _FILE, mega=mega, columns=self._current.columns)
        if self._teacher is not None:
            self._teacher.save(folder)

    def load_state(self, folder: Path) -> None:
        """Load what `save_state` wrote."""
        with np.load(folder / _FILE) as file:
            self._current = replace(
                self._read(MegaBatch(*file["mega"].tolist())), columns=file["columns"]
            )
        if self._current.columns.shape != (4, len(self._current.rows)):
            raise ValueError(f"{_FILE} was mined with another batch size")
        if self._teacher is not None:
            self._teacher.load(folder)


def _check(store: PairStore, embedding: TokenEmbedding) -> None:
    """Refuse a store that cannot be mined, or that has another vocabulary than the model."""
    if len(store) < 2:
        raise StoreError(f"{store.path}: {len(store)} pair; negatives need at least two pairs")
    first, second = store.tokenizers
    if not first.shares_rows(second):
        seen = "the sides have separate vocabularies, but mega-batches need a joint vocabulary"
        raise StoreError(f"{store.path}: {seen}; prepare the pairs again")
    if not first.shares_rows(embedding.tokenizer):
        seen = "the model's tokenizer differs from the store's"
        raise SettingsError(f"{store.path}: {seen}; build the model with store.tokenizer()")
