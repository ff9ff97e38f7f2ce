"""Mega-batch training inside sentence-transformers' trainer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset
from transformers import PrinterCallback, ProgressCallback

from st_paragram import model_directory
from st_paragram.data.pair_store import PairStore
from st_paragram.errors import SettingsError, StoreError
from st_paragram.losses.hardest_negatives import hardest_negatives
from st_paragram.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding, flat_features
from st_paragram.training.arguments import MegaBatchTrainingArguments
from st_paragram.training.callbacks import InterruptCallback, RateCallback
from st_paragram.training.row_lazy_adam import RowLazyAdam, rows_and_values
from st_paragram.training.schedule import EpochPermutation, MegaBatch, mega_batches, text_labels

_MINING_BATCH = 8192  # sentences embedded at a time
MINED_FILE = "mega_batch.npz"
_CURRENT = "current"


class _Steps(IterableDataset):  # type: ignore[type-arg]
    """As many empty batches as an epoch has mini-batches: what a step trains on follows from its number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({} for _ in range(self.count))


class MegaBatchTrainer(SentenceTransformerTrainer):
    """Train on a pair store: mine a mega-batch's negatives with frozen parameters, then make its optimiser steps.

    Source: EMNLP 2022, sections 2 and 3. The mini-batches, the mega-batches and the permutation of an epoch depend on
    the settings and the seed alone. Mining happens in the first `training_step` of a mega-batch, so it sees the
    parameters as the last step left them. A checkpoint at any step carries the mined rows and resumes to the bit.
    """

    training_args_class = MegaBatchTrainingArguments
    args: MegaBatchTrainingArguments
    loss: nn.Module  # type: ignore[assignment]

    def __init__(
        self,
        model: SentenceTransformer,
        args: MegaBatchTrainingArguments,
        train_dataset: PairStore,
        loss: nn.Module | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Set up a training.

        Args:
            model: a pipeline that starts with `SentencePieceEmbedding`, with the store's vocabulary.
            args: settings.
            train_dataset: the pairs.
            loss: takes four columns (s, t, negative of s, negative of t); `MarginHardNegativeLoss` by default.
            kwargs: further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and `callbacks`.

        Raises:
            SettingsError: a model that cannot be trained on the store's ids.
            StoreError: fewer than two pairs.
        """
        if len(train_dataset) < 2:
            raise StoreError(f"{train_dataset.path}: {len(train_dataset)} pair; a negative needs at least two pairs")
        self.embedding = _embedding_of(model, train_dataset)
        model_directory.check_savable(model)
        self.embedding.sparse_gradient = args.row_lazy_adam
        self.store = train_dataset
        self._schedule: Iterator[MegaBatch] | None = None
        self._current: MegaBatch | None = None
        self._mined: dict[str, NDArray[np.int64]] = {}
        super().__init__(model=model, args=args, loss=loss or MarginHardNegativeLoss(model), **kwargs)
        self.remove_callback(ProgressCallback)
        self.remove_callback(PrinterCallback)
        self._rate, self._interrupt = RateCallback(self), InterruptCallback()
        self.add_callback(self._rate)
        self.add_callback(self._interrupt)

    @property
    def step_seconds(self) -> float:
        """Time of the last training's steps; evaluation and checkpoints left out."""
        return self._rate.seconds

    @property
    def pairs_trained(self) -> int:
        """Pairs of those steps."""
        return self._rate.pairs

    def train(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Train as sentence-transformers' trainer does.

        Raises:
            KeyboardInterrupt: on Ctrl-C, after a checkpoint was written.
        """
        self._schedule = self._current = None
        try:
            output = super().train(*args, **kwargs)
        finally:
            self._interrupt.release()
            self._rate.close()
            self.embedding.before_lookup = None
            if (optimizer := self._row_lazy_adam()) is not None:
                optimizer.catch_up_all()
        if self._interrupt.interrupted:
            raise KeyboardInterrupt
        return output

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Evaluate the weights as dense Adam would have left them; training goes on as if nobody had looked."""
        with self._up_to_date():
            return super().evaluate(*args, **kwargs)

    @contextmanager
    def _up_to_date(self) -> Iterator[None]:
        optimizer, hook = self._row_lazy_adam(), self.embedding.before_lookup
        self.embedding.before_lookup = None
        try:
            with optimizer.caught_up() if optimizer else nullcontext():
                yield
        finally:
            self.embedding.before_lookup = hook

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Make `RowLazyAdam` on the embedding table, or the optimiser that `args.optim` names."""
        if not self.args.row_lazy_adam:
            return super().create_optimizer(model) if model is not None else super().create_optimizer()
        others = [name for name, p in self.loss.named_parameters() if p is not self.embedding.embedding.weight]
        if others:
            raise SettingsError(
                f"RowLazyAdam trains the embedding table alone, not {others[0]}; set row_lazy_adam=False"
            )
        args = self.args
        optimizer = RowLazyAdam(
            [cast("nn.Parameter", self.embedding.embedding.weight)],
            args.learning_rate,
            (args.adam_beta1, args.adam_beta2),
            args.adam_epsilon,
        )
        optimizer.watch(self.embedding)
        self.optimizer = optimizer
        return optimizer

    @property
    def batches_per_epoch(self) -> int:
        """Mini-batches of an epoch, the remainder batch included."""
        return -(-len(self.store) // self.args.train_batch_size)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Empty batches; not prepared by accelerate, which has nothing to move or to share out here."""
        return DataLoader(_Steps(self.batches_per_epoch), batch_size=None, num_workers=0)

    def num_examples(self, dataloader: DataLoader[Any]) -> int:
        """Number of pairs."""
        return len(self.store)

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """Mine if the step opens a mega-batch, then do forward and backward on its pairs and negatives."""
        mega = self._mega_batch_of(self.state.global_step)
        if self._current != mega:
            self._mine(mega)
        index = self.state.global_step % self.batches_per_epoch
        size = self.args.train_batch_size
        rows = slice((index - mega.start) * size, (index - mega.start + 1) * size)
        batch = {}
        for column in ("s", "t", "negative_of_s", "negative_of_t"):
            features = self._features(self._mined[column][rows])
            batch.update({f"{column}_{key}": value for key, value in features.items()})
        loss: Tensor = super().training_step(model, batch, *args, **kwargs)
        if not torch.isfinite(loss):
            raise SettingsError(f"loss is {loss.item()} at step {self.state.global_step}; lower the learning rate")
        return loss

    def _mega_batch_of(self, step: int) -> MegaBatch:
        """The mega-batch of a step; the schedule is followed from the start, so that resuming needs no state."""
        epoch, index = divmod(step, self.batches_per_epoch)
        if self._schedule is None:
            self._schedule = mega_batches(self.batches_per_epoch, self.args.megabatch_size, self.args.anneal_interval)
            self._scheduled = next(self._schedule)
        while (self._scheduled.epoch, self._scheduled.stop) <= (epoch, index):
            self._scheduled = next(self._schedule)
        return self._scheduled

    @torch.no_grad()
    def _mine(self, mega: MegaBatch) -> None:
        """Choose the negatives of a mega-batch with the present parameters, dropout off.

        Sentences are named by 2 * row + side, so that a negative may come from either side.
        """
        size, n = self.args.train_batch_size, len(self.store)
        rows = EpochPermutation(n, self.args.seed, mega.epoch)[mega.start * size : min(mega.stop * size, n)]
        self.model.eval()
        first, second = self._embed("a", rows), self._embed("b", rows)
        self.model.train()
        labels = None
        if self.args.mask_duplicates:
            first_labels, second_labels = (text_labels(*self.store.take(side, rows)) for side in "ab")
            labels = (torch.from_numpy(first_labels).to(first.device), torch.from_numpy(second_labels).to(first.device))
        both = self.args.negatives_from_both_sides
        of_s, of_t = (x.cpu().numpy() for x in hardest_negatives(first, second, labels, both_sides=both))
        s, t = 2 * rows, 2 * rows + 1
        everything = np.concatenate([s, t])
        self._mined = {
            "s": s,
            "t": t,
            "negative_of_s": everything[of_s] if both else t[of_s],
            "negative_of_t": everything[of_t] if both else s[of_t],
        }
        self._current = mega

    def _embed(self, side: str, rows: NDArray[np.int64]) -> Tensor:
        parts = []
        for start in range(0, len(rows), _MINING_BATCH):
            features = flat_features(*self.store.take(side, rows[start : start + _MINING_BATCH]))
            features = {key: value.to(self.args.device) for key, value in features.items()}
            parts.append(self.model(features)["sentence_embedding"])
        return torch.cat(parts)

    def _features(self, sentences: NDArray[np.int64]) -> dict[str, Tensor]:
        """Features of sentences named by 2 * row + side, in their order."""
        sides = sentences % 2
        if (sides == sides[0]).all():
            return flat_features(*self.store.take("ab"[sides[0]], sentences // 2))
        counts = np.empty(len(sentences), dtype=np.int64)
        taken = {}
        for side in (0, 1):
            taken[side] = self.store.take("ab"[side], sentences[sides == side] // 2)
            counts[sides == side] = np.diff(taken[side][1])
        offsets = np.concatenate([[0], np.cumsum(counts)])
        flat = np.empty(offsets[-1], dtype=np.int64)
        side_of_token = np.repeat(sides, counts)
        for side in (0, 1):
            flat[side_of_token == side] = taken[side][0]
        return flat_features(flat, offsets)

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        """Clip as torch's `clip_grad_norm_`, which refuses sparse gradients."""
        gradient = self.embedding.embedding.weight.grad
        if gradient is None or not gradient.is_sparse:
            return super()._clip_grad_norm(model)
        norm = rows_and_values(gradient)[1].norm()
        gradient._values().mul_((self.args.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:  # noqa: ANN401
        """Only a norm that clipping has computed is logged: another pass over the gradient tells little."""
        return grad_norm

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log M with the loss."""
        if "loss" in logs and self._current is not None:
            logs["megabatch_size"] = self._current.size
        super().log(logs, start_time)

    # Checkpoints: a model directory, the optimiser's state, and the mined rows of the mega-batch under way.

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:  # noqa: ANN401
        folder = Path(output_dir or str(self.args.output_dir))
        with self._up_to_date():
            model_directory.write_files(self.model, folder)
        if self._current is not None:
            current = np.array([self._current.epoch, self._current.start, self._current.stop, self._current.size])
            arrays: dict[str, Any] = {_CURRENT: current, **self._mined}
            np.savez(folder / MINED_FILE, **arrays)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        model_directory.read_weights(Path(resume_from_checkpoint), into=self.embedding)
        with np.load(Path(resume_from_checkpoint) / MINED_FILE, allow_pickle=False) as saved:
            self._current = MegaBatch(*saved[_CURRENT].tolist())
            self._mined = {name: saved[name] for name in saved.files if name != _CURRENT}

    def _load_best_model(self) -> None:
        if (optimizer := self._row_lazy_adam()) is not None:
            optimizer.catch_up_all()  # or the last step's sleepers would move the best rows later
        model_directory.read_weights(Path(str(self.state.best_model_checkpoint)), into=self.embedding)

    def _row_lazy_adam(self) -> RowLazyAdam | None:
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)  # accelerate wraps it
        return optimizer if isinstance(optimizer, RowLazyAdam) else None


def _embedding_of(model: SentenceTransformer, store: PairStore) -> SentencePieceEmbedding:
    embedding = model[0]
    if not isinstance(embedding, SentencePieceEmbedding):
        raise SettingsError(
            f"the model starts with {type(embedding).__name__}; MegaBatchTrainer needs SentencePieceEmbedding"
        )
    if embedding.vocabulary.model_proto != store.vocabulary().model_proto:
        raise SettingsError(
            f"{store.path}: the model's vocabulary is not the store's; build it with store.vocabulary()"
        )
    return embedding
