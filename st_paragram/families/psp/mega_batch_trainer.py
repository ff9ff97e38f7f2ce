"""Mega-batch training (EMNLP 2022): mine negatives with frozen parameters, then train on them."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.core.arrays import Vectors
from st_paragram.core.formatting import counted
from st_paragram.core.native import kernels
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError, StoreError
from st_paragram.families.psp.compiled_adam import CompiledAdam
from st_paragram.families.psp.dataset_store import store_of
from st_paragram.families.psp.hardest_negatives import Precision, hardest_negatives
from st_paragram.families.psp.loss_columns import column_count
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.families.psp.mega_batch import MegaBatch, MegaBatchTexts, Rows, mega_batches
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
    """sentence-transformers' training arguments with those of the mega-batch procedure.

    Defaults are as in EMNLP 2022.

    Args:
        megabatch_size: Maximum M, in mini-batches; the paper tunes over 60, 100, 140.
        anneal_interval: Mini-batches between increments of M; 0: maximum M from the start.
        negatives: Search the sentences of the opposite side for negatives ("opposite", for bitext),
            or of both sides ("both", for paraphrases), or draw them from the opposite side
            ("random", for comparisons).
        mask_duplicates: Pairs that share a text are never each other's negatives. False: as in the
            authors' code.
        scramble: Probability of shuffling a sentence's ids, see `mega_batch.scrambled`.
        compiled_step: Use the compiled training step if possible (CPU, no clipping, no weight
            decay).
        mining_precision: Number type of similarities in the search for negatives: "auto" (the
            fastest type of the device) or "float32".
        teacher: File of teacher vectors for the pairs, see `Teacher`; empty for none.
        teacher_weight: Weight of the teacher loss.

    Examples:
        >>> from st_paragram import MegaBatchTrainingArguments
        >>> MegaBatchTrainingArguments("checkpoints", num_train_epochs=10,
        ...     megabatch_size=20).megabatch_size
        20
    """

    per_device_train_batch_size: int = _DEFAULTS.batch_size
    num_train_epochs: float = _DEFAULTS.epochs
    learning_rate: float = _DEFAULTS.learning_rate
    megabatch_size: int = _DEFAULTS.megabatch_size
    anneal_interval: int = _DEFAULTS.anneal_interval
    negatives: str = _DEFAULTS.negatives
    mask_duplicates: bool = True
    scramble: float = 0.0
    compiled_step: bool = True
    mining_precision: str = _DEFAULTS.mining_precision
    teacher: str = ""
    teacher_weight: float = _DEFAULTS.teacher_weight

    def __post_init__(self) -> None:
        """Check values like the settings of the same names."""
        values: Any = {
            "megabatch_size": self.megabatch_size,
            "anneal_interval": self.anneal_interval,
            "negatives": self.negatives,
            "scramble": self.scramble,
            "mining_precision": self.mining_precision,
            "teacher": self.teacher,
            "teacher_weight": self.teacher_weight,
        }
        TrainingSettings(encoder="blstm", **values)  # an encoder that can be scrambled
        super().__post_init__()


class MegaBatchTrainer(StoreTrainer):
    """Train on pairs: mine a mega-batch's negatives with frozen parameters, then make its steps.

    Source: EMNLP 2022, section 3. The mini-batches, the mega-batches and the permutation of
    an epoch depend only on the settings and the seed. Mining happens in the first step of a
    mega-batch, with the parameters after the previous step. A checkpoint at any step contains the
    mined rows, so a resumed run gives identical results.

    On a CPU, the whole step is one compiled call if possible (see `CompiledAdam`); otherwise, it
    runs in torch with dense Adam. The log shows which.

    Examples:
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
    loss: Any
    _current: MegaBatchTexts | None = None
    _next: Future[MegaBatchTexts] | None = None
    _compiled: CompiledAdam | None = None
    _teacher: Teacher | None = None

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
            loss: Loss on the first two, three or four of the columns s, t, negative of s, negative
                of t: its attribute `columns`, by default 4. Losses of sentence-transformers get
                the columns that they take. By default `MarginHardNegativeLoss`.
            kwargs: Further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and
                `callbacks`.

        Raises:
            SettingsError: The loss needs labels, or the model has another tokenizer than the pairs.
        """
        args = args or MegaBatchTrainingArguments("checkpoints")
        loss = loss or MarginHardNegativeLoss(model)
        if not isinstance(model[0], TokenEmbedding):
            raise SettingsError(
                "MegaBatchTrainer trains models that begin with TokenEmbedding, not"
                f" {type(model[0]).__name__}; use MarginHardNegativeLoss with"
                " SentenceTransformerTrainer"
            )
        self.embedding: TokenEmbedding = model[0]
        self._column_count = column_count(loss)
        self._searches = args.negatives != "random" and self._column_count > 2
        if isinstance(train_dataset, PairStore):
            store = train_dataset
        else:
            store = store_of(train_dataset, self.embedding.tokenizer)
        _check_store(store, self.embedding)
        if args.teacher:
            if type(loss) is not MarginHardNegativeLoss:
                raise SettingsError(
                    f"a teacher needs MarginHardNegativeLoss, not {type(loss).__name__}"
                )
            self._teacher = Teacher(
                args.teacher,
                store,
                args.teacher_weight,
                dim=model.get_embedding_dimension() or 0,
                seed=args.seed,
                device=args.device,
            )
        super().__init__(model, args, store, loss=loss, **kwargs)
        self.precision: Precision = Precision(args.mining_precision).on(args.device)

    @property
    def batches_per_epoch(self) -> int:
        """Number of mini-batches in an epoch; the last has the remaining pairs."""
        return -(-len(self.store) // self.args.train_batch_size)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train like `StoreTrainer`."""
        # Iterated from the start, so that resuming needs no state.
        self._schedule = mega_batches(
            self.batches_per_epoch, self.args.megabatch_size, self.args.anneal_interval
        )
        self._current = None
        self._next = None
        self._compiled = None
        with ThreadPoolExecutor(1, "next mega-batch") as self._reader:
            try:
                return super().train(*args, **kwargs)
            finally:
                if self._compiled is not None:
                    self._compiled.catch_up()

    def create_optimizer(self, *model: Any) -> torch.optim.Optimizer:
        """Make the compiled step, or the optimizer named by `args.optim`."""
        args = self.args
        obstacle = CompiledAdam.obstacle(self.model, self.loss, args)
        if not args.compiled_step:
            obstacle = "compiled_step is False"
        step = f"torch ({obstacle})" if obstacle else f"compiled ({kernels().instructions()})"
        threads = counted(torch.get_num_threads(), "thread")
        mining = self.precision.value if self._searches else "none"
        logger.info(f"step: {step}; mining: {mining}; device: {args.device}, {threads}")
        if obstacle:
            return super().create_optimizer(*model)
        table: Any = self.embedding.embedding.weight
        self._compiled = CompiledAdam(
            table,
            args.learning_rate,
            betas=(args.adam_beta1, args.adam_beta2),
            eps=args.adam_epsilon,
            unknown_ids=self.embedding.tokenizer.unknown_ids,
        )
        self.optimizer: torch.optim.Optimizer = self._compiled
        return self._compiled

    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Mine if the step begins a mega-batch, then make the step on its pairs and negatives."""
        epoch, batch = divmod(step, self.batches_per_epoch)
        texts = self._mined(epoch, batch)
        size = self.args.train_batch_size
        start = (batch - texts.mega.start) * size
        columns = texts.columns[:, start : start + size]
        rows = texts.rows[start : start + size]
        if self._compiled is None:
            loss = self._torch_step(texts, columns, rows)
        else:
            loss = self._compiled_step(self._compiled, texts, columns, rows)
        return loss, len(rows)

    # Mining.

    def _mined(self, epoch: int, batch: int) -> MegaBatchTexts:
        """Return the mined mega-batch of a mini-batch, while the texts of the next are read."""
        position = (epoch, batch)
        current = self._current
        if current is not None and (current.mega.epoch, current.mega.stop) > position:
            return current
        if self._next is not None:
            texts = self._next.result()
        else:
            mega = next(self._schedule)
            while (mega.epoch, mega.stop) <= position:
                mega = next(self._schedule)
            texts = self._read(mega)
        self._current = self._mine(texts)
        self._next = self._reader.submit(self._read, next(self._schedule))
        return self._current

    def _read(self, mega: MegaBatch) -> MegaBatchTexts:
        args = self.args
        return MegaBatchTexts.read(
            self.store, mega, args.train_batch_size, seed=args.seed, scramble=args.scramble
        )

    @torch.no_grad()
    def _mine(self, texts: MegaBatchTexts) -> MegaBatchTexts:
        """Choose the negatives of a mega-batch with the current parameters, without dropout."""
        n = len(texts.rows)
        labels = texts.labels if self.args.mask_duplicates else texts.labels[:0]
        if not self._searches:
            return texts.with_random_negatives(self.args.seed, labels)
        both_sides = self.args.negatives == "both"
        first, second = self._embed(texts).split(n)
        of_s, of_t = hardest_negatives(
            first,
            second,
            torch.from_numpy(labels).to(first.device).unbind(),
            both_sides=both_sides,
            precision=self.precision,
        )
        if not both_sides:
            of_s += n  # the sentences t follow those of s
        return texts.with_negatives(of_s.cpu().numpy(), of_t.cpu().numpy())

    def _embed(self, texts: MegaBatchTexts) -> Tensor:
        """Embed all sentences, float (2n, D)."""
        if self._compiled is not None:
            return self._compiled.embed(texts.ids, texts.offsets)
        self.model.eval()
        size = _MINING_BATCH
        if averaging_embedding(self.model) is None:
            # The model pads texts: few at a time, of similar length.
            size = 4 * self.args.train_batch_size
        order = np.argsort(np.diff(texts.offsets), kind="stable")
        parts = []
        for start in range(0, len(order), size):
            features = self._features(texts, order[start : start + size])
            parts.append(self.model(features)["sentence_embedding"])
        embeddings = torch.cat(parts)
        return embeddings[torch.from_numpy(np.argsort(order)).to(embeddings.device)]

    def _features(self, texts: MegaBatchTexts, sentences: Rows) -> dict[str, Any]:
        features = flat_features(*texts.take(sentences))
        return {name: tensor.to(self.args.device) for name, tensor in features.items()}

    # The two kinds of steps.

    def _torch_step(self, texts: MegaBatchTexts, columns: Rows, rows: Rows) -> Tensor:
        self.model.train()
        columns = columns[: self._column_count]
        features = [self._features(texts, column) for column in columns]
        if self._teacher is None:
            loss: Tensor = self.loss(features, None)
            loss.backward()
            return loss.detach()
        s, t, of_s, of_t = self.loss.embed(features)
        loss = margin_loss(s, t, of_s, of_t, margin=self.loss.margin)
        embeddings = torch.cat([s, t])
        teacher_loss, gradient = self._teacher.learn(embeddings.detach(), rows)
        (loss + (embeddings * gradient).sum()).backward()
        return loss.detach() + teacher_loss

    def _compiled_step(
        self,
        compiled: CompiledAdam,
        texts: MegaBatchTexts,
        columns: Rows,
        rows: Rows,
    ) -> Tensor:
        teacher: Any = self._teacher
        teacher_loss = 0.0

        def learn(embeddings: Vectors) -> Vectors:
            nonlocal teacher_loss
            teacher_loss, gradient = teacher.learn(torch.from_numpy(embeddings), rows)
            return gradient.numpy()

        loss = compiled.make_step(
            texts.ids,
            texts.offsets,
            columns,
            margin=self.loss.margin,
            dropout=self.embedding.dropout,
            seed=self.args.seed,
            further=learn if teacher else None,
        )
        return torch.tensor(loss + teacher_loss)

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

    def save_state(self, folder: Path) -> None:
        """Write the mined rows of the current mega-batch, and the teacher's map."""
        if self._current is not None:
            mega = np.array(astuple(self._current.mega))
            np.savez(folder / _FILE, mega=mega, columns=self._current.columns)
        if self._teacher is not None:
            self._teacher.save(folder)

    def load_state(self, folder: Path) -> None:
        """Load what `save_state` wrote."""
        # After training, the loaded weights are those of the best model, and none sleeps.
        self._compiled = None
        with np.load(folder / _FILE) as file:
            texts = self._read(MegaBatch(*file["mega"].tolist()))
            self._current = replace(texts, columns=file["columns"])
        if self._current.columns.shape != (4, len(texts.rows)):
            raise ValueError(f"{_FILE} was mined with another batch size")
        if self._teacher is not None:
            self._teacher.load(folder)


def _check_store(store: PairStore, embedding: TokenEmbedding) -> None:
    """Refuse a store that cannot be mined, or that has another vocabulary than the model."""
    if len(store) < 2:
        raise StoreError(f"{store.path}: {len(store)} pair; negatives need at least two pairs")
    first, second = store.tokenizers
    if not first.shares_rows(second):
        raise StoreError(
            f"{store.path}: the sides have separate vocabularies, but mega-batches need a joint"
            " vocabulary; prepare the pairs again"
        )
    if not first.shares_rows(embedding.tokenizer):
        raise SettingsError(
            f"{store.path}: the model's tokenizer differs from the store's; build the model with"
            " store.tokenizer()"
        )
