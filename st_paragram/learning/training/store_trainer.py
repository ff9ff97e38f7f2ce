"""Training on pair stores inside sentence-transformers' trainer: any pipeline, any loss, one store or several."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset
from transformers import PrinterCallback, ProgressCallback

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.errors import SettingsError
from st_paragram.learning.models.directory import check_savable
from st_paragram.learning.modules import huge_pages
from st_paragram.learning.modules.flat_features import flat_features
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.batch_order import BatchOrder
from st_paragram.learning.training.callbacks import InterruptCallback, RateCallback
from st_paragram.learning.training.resumable_trainer import ResumableTrainer
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam, rows_and_values

logger = logging.getLogger(__name__)

#: The name of a store that is trained on alone.
ONLY_STORE = "pairs"


class _Steps(IterableDataset):  # type: ignore[type-arg]
    """As many empty batches as an epoch has: what a step trains on follows from its number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({} for _ in range(self.count))


class StoreTrainer(ResumableTrainer):
    """Train a pipeline on one pair store or several, with the loss of each.

    What a step trains on follows from its number, the stores and the seed alone (see `BatchOrder`), so that a run can
    be resumed at any step, to the bit. The store's ids go into a model that starts with `TokenEmbedding`; any other
    model gets the stored texts, decoded, through its own `preprocess`.

    A trainer of another procedure overrides `make_step` and, if it must know more to resume, `save_state` and
    `load_state`.

    Example:
        >>> import st_paragram
        >>> from st_paragram import MarginHardNegativeLoss, MegaBatchTrainingArguments, PairStore, StoreTrainer
        >>> model, store = st_paragram.load("p-sp-es", device="cpu"), PairStore("data/en-es.h5")
        >>> arguments = StoreTrainer.training_args_class("checkpoints", max_steps=2, use_cpu=True, disable_tqdm=True)
        >>> result = StoreTrainer(model, arguments, store, MarginHardNegativeLoss(model)).train()
        >>> result.global_step
        2
    """

    training_args_class = StoreTrainingArguments
    args: StoreTrainingArguments

    def __init__(
        self,
        model: SentenceTransformer,
        args: StoreTrainingArguments,
        train_dataset: PairStore | Mapping[str, PairStore],
        loss: nn.Module | Mapping[str, nn.Module],
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Set up a training run.

        Args:
            model: any pipeline that a model directory can hold.
            args: arguments of the run.
            train_dataset: the pairs: a store, or stores by name.
            loss: takes two columns, the texts of both sides, and the labels of a store that has some; one for all
                stores, or one for each by its name.
            kwargs: further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and `callbacks`.

        Raises:
            SettingsError: a model that starts with `TokenEmbedding` on another tokenizer than a store's, or losses
                under other names than the stores.
            ModelDirectoryError: a model that no model directory can hold.
        """
        check_savable(model)
        stores = {ONLY_STORE: train_dataset} if isinstance(train_dataset, PairStore) else dict(train_dataset)
        self.embedding = _embedding_of(model, stores)
        if self.embedding is not None:
            self.embedding.sparse_gradient = args.row_lazy_adam
        self.stores = stores
        super().__init__(model=model, args=args, loss=_losses(loss, stores), **kwargs)
        self.remove_callback(ProgressCallback)
        self.remove_callback(PrinterCallback)
        self._rate, self._interrupt = RateCallback(), InterruptCallback()
        self.add_callback(self._rate)
        self.add_callback(self._interrupt)
        sizes = {name: len(store) for name, store in stores.items()}
        self._order = BatchOrder(sizes, args.train_batch_size, args.seed)
        if self.embedding is not None and (table := self.embedding.embedding.weight).device.type == "cpu":
            table.data = huge_pages.copy_of(table.data)

    @property
    def step_seconds(self) -> float:
        """Seconds that the steps of the last `train` took, evaluation and checkpoints left out."""
        return self._rate.seconds

    @property
    def pairs_trained(self) -> int:
        """Pairs of those steps."""
        return self._rate.pairs

    @property
    def own_seconds(self) -> float:
        """The part of `step_seconds` that went into the steps themselves, not into the trainer around them."""
        return self._rate.own_seconds

    def train(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Train as `ResumableTrainer` does.

        Raises:
            KeyboardInterrupt: on Ctrl-C, after a checkpoint was written.
        """
        try:
            output = super().train(*args, **kwargs)
        finally:
            self._interrupt.release()
            self._rate.close()
            if self.embedding is not None:
                self.embedding.before_lookup = None
            if (optimizer := self.row_lazy_adam()) is not None:
                optimizer.catch_up_all()
        if self._interrupt.interrupted:
            raise KeyboardInterrupt
        return output

    # Steps.

    @property
    def batches_per_epoch(self) -> int:
        """Mini-batches of an epoch, each store's remainder batch included."""
        return len(self._order)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Empty batches; not prepared by accelerate, which has nothing to move or to share out here."""
        return DataLoader(_Steps(self.batches_per_epoch), batch_size=None, num_workers=0)

    def num_examples(self, dataloader: DataLoader[Any]) -> int:
        """Number of pairs."""
        return sum(map(len, self.stores.values()))

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401
        """Make the forward and backward pass of the step that is due; `inputs` are empty.

        Raises:
            SettingsError: a loss that is not a number.
        """
        started = time.perf_counter()
        loss, pairs = self.make_step(model, *args, **kwargs)
        if not torch.isfinite(loss):
            raise SettingsError(f"loss is {loss.item()} at step {self.state.global_step}; lower the learning rate")
        self._rate.pairs += pairs
        self._rate.own_seconds += time.perf_counter() - started
        return loss

    def make_step(self, model: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, int]:  # noqa: ANN401
        """Make the forward and backward pass of the step that is due.

        Returns:
            The loss, a scalar, and the number of pairs.
        """
        name, rows = self._order.at(self.state.global_step)
        store = self.stores[name]
        columns = {side: self.features(name, side, *store.take(side, rows)) for side in SIDES}
        return self.loss_step(model, columns, name, store.labels(rows), *args, **kwargs), len(rows)

    def features(
        self, store: str, side: str, ids: NDArray[np.integer[Any]], offsets: NDArray[np.int64]
    ) -> dict[str, Tensor]:
        """Features of B texts for the model's first module.

        Args:
            store: name of the texts' store.
            side: of the store, "a" or "b".
            ids: integers (total,).
            offsets: int64 (B + 1,).
        """
        if self.embedding is not None:
            return flat_features(ids, offsets)
        decode = self.stores[store].tokenizer(side=side).decode
        texts = [decode(ids[begin:end].tolist()) for begin, end in itertools.pairwise(offsets)]
        return self.model.preprocess(texts)

    def loss_step(
        self,
        model: nn.Module,
        columns: Mapping[str, dict[str, Tensor]],
        store: str,
        labels: NDArray[Any] | None = None,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> Tensor:
        """Make the forward and backward pass of a store's loss.

        Args:
            model: as it was given to `make_step`.
            columns: features of B texts each, by names none of which is the beginning of another.
            store: whose loss it is.
            labels: numbers (B,) for the loss, if it takes them.
            args: further arguments of `training_step`.
            kwargs: the same.

        Returns:
            The loss, a scalar.
        """
        batch: dict[str, Any] = {"dataset_name": store}
        for name, features in columns.items():
            batch.update({f"{name}_{key}": value for key, value in features.items()})
        if labels is not None:
            batch["label"] = torch.from_numpy(labels.astype(np.float32 if labels.dtype.kind == "f" else np.int64))
        return super().training_step(model, batch, *args, **kwargs)

    # The optimizer.

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Make `RowLazyAdam` on the embedding table, or the optimizer that `args.optim` names."""
        if not self.args.row_lazy_adam:
            return super().create_optimizer(model) if model is not None else super().create_optimizer()
        table = self._only_table()
        args = self.args
        optimizer = RowLazyAdam([table], args.learning_rate, (args.adam_beta1, args.adam_beta2), args.adam_epsilon)
        optimizer.watch(self.embedding)
        # accelerate wraps what is not marked so, and its wrapper takes longer than many a step: it looks for a package
        # on the disk and inspects a signature, each time. There is nothing to scale or to share out here.
        optimizer._is_accelerate_prepared = True  # type: ignore[attr-defined]
        optimizer.step_was_skipped = False  # type: ignore[attr-defined]
        self.optimizer = optimizer
        return optimizer

    def _only_table(self) -> nn.Parameter:
        """The table that `RowLazyAdam` trains."""
        table = None if self.embedding is None else self.embedding.embedding.weight
        names = [name for loss in self.losses().values() for name, p in loss.named_parameters() if p is not table]
        if table is None or names:
            seen = f", not {names[0]}" if names else ""
            raise SettingsError(
                f"RowLazyAdam trains the table of a TokenEmbedding alone{seen}; set row_lazy_adam=False"
            )
        return cast("nn.Parameter", table)

    def losses(self) -> dict[str, nn.Module]:
        """The losses by the names of their stores."""
        return self.loss if isinstance(self.loss, dict) else {ONLY_STORE: self.loss}

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        """Clip as torch's `clip_grad_norm_`, which refuses sparse gradients; the losses' own parameters count, too."""
        gradient = None if self.embedding is None else self.embedding.embedding.weight.grad
        if gradient is None or not gradient.is_sparse:
            return super()._clip_grad_norm(nn.ModuleList([model, *self.losses().values()]))
        norm = rows_and_values(gradient)[1].norm()
        gradient._values().mul_((self.args.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:  # noqa: ANN401
        """Only a norm that clipping has computed is logged: another pass over the gradient shows little."""
        return grad_norm

    # Evaluation.

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Evaluate the weights as dense Adam would have left them; training continues as if nobody had looked."""
        with self.up_to_date():
            return super().evaluate(*args, **kwargs)

    @contextmanager
    def up_to_date(self) -> Iterator[None]:
        """Within the block the weights are as dense Adam would have left them; training continues as before."""
        optimizer = self.row_lazy_adam()
        if self.embedding is None or optimizer is None:
            yield
            return
        hook, self.embedding.before_lookup = self.embedding.before_lookup, None
        try:
            with optimizer.caught_up():
                yield
        finally:
            self.embedding.before_lookup = hook


def _losses(
    loss: nn.Module | Mapping[str, nn.Module], stores: Mapping[str, PairStore]
) -> nn.Module | dict[str, nn.Module]:
    if isinstance(loss, nn.Module):
        return loss
    if set(loss) != set(stores):
        seen = f"losses are named {', '.join(sorted(loss))}, stores {', '.join(sorted(stores))}"
        raise SettingsError(f"{seen}; give losses and stores the same names")
    if bad := [name for name in loss if not name or "." in name]:
        raise SettingsError(f"a store is named {bad[0]!r}; give it a name without a dot")
    return dict(loss)


def _embedding_of(model: SentenceTransformer, stores: Mapping[str, PairStore]) -> TokenEmbedding | None:
    """The model's first module, if ids can go into it directly."""
    embedding = model[0]
    if not isinstance(embedding, TokenEmbedding):
        return None
    for store in stores.values():
        if not all(store.tokenizer(side=side).shares_rows(embedding.tokenizer) for side in SIDES):
            raise SettingsError(
                f"{store.path}: the model's tokenizer is not the store's; build the model with store.tokenizer()"
            )
    return embedding
