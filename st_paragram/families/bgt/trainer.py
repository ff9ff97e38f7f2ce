"""Training of the bilingual generative transformer and its baselines on a pair store (EMNLP 2020)."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.bilingual_generator import active_units
from st_paragram.families.bgt.settings import SIDES, Side
from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.families.bgt.token_batches import TokenBatches
from st_paragram.families.bgt.translation_elbo import ElboTerms, TranslationElbo, annealed
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.training.arguments import MixedPrecisionArguments
from st_paragram.learning.training.batch_order import seed_of
from st_paragram.learning.training.collective import sum_gradients, sum_over_processes
from st_paragram.learning.training.store_trainer import StoreTrainer

logger = logging.getLogger(__name__)

#: What an evaluation calls the loss of the pairs that are not trained on.
HELD_OUT_LOSS = "eval_held_out_loss"

_DEFAULTS = GenerativeSettings()
_PARTS = ("reconstruction", "translation", "smoothing", "divergence", "kl_semantic", "kl_a", "kl_b")
_MEANS_KEPT = 2000  # sentences whose means show how many units are active
_EVALUATED = 32  # pairs of a batch whose loss is measured
_COLLAPSED = 0.5  # nats: a semantic variable that holds less says nothing of its sentence


@dataclass
class GenerativeTrainingArguments(MixedPrecisionArguments):
    """Arguments of `StoreTrainer` with what batches of tokens need; defaults as in EMNLP 2020.

    Args:
        batch_tokens: largest size of a batch, sentences times the longest length of the longer side.
        accumulate: batches of an update.
        anneal_updates: updates until the divergence has its full weight.
        held_out: pairs, the last ones of the store, that are not trained on but evaluated; at most a twentieth of all.
    """

    batch_tokens: int = _DEFAULTS.batch_tokens
    accumulate: int = _DEFAULTS.accumulate
    anneal_updates: int = _DEFAULTS.anneal_updates
    held_out: int = 0
    num_train_epochs: float = _DEFAULTS.epochs
    learning_rate: float = _DEFAULTS.learning_rate
    lr_scheduler_type: str = _DEFAULTS.schedule
    adam_beta2: float = 0.98

    def __post_init__(self) -> None:
        """Check the arguments before anything is loaded.

        Raises:
            SettingsError: an argument outside its range, or what `StoreTrainingArguments` refuses.
        """
        checked = ("batch_tokens", "accumulate", "anneal_updates", "held_out", "precision")
        GenerativeSettings(**{name: getattr(self, name) for name in checked})
        super().__post_init__()


class GenerativeTrainer(StoreTrainer):
    """Train on batches of pairs of like length, each with a budget of tokens.

    An update takes `accumulate` batches, and its loss is the mean over their pairs, however they are shared out
    among processes: each process takes its share of the rows of every batch, and gradients are summed. Noise of the
    latent variables follows from the seed and the update, dropout from these and the process, so that a run resumes to
    the bit.

    Set `batch_tokens` and `accumulate` in place of `per_device_train_batch_size`.
    """

    training_args_class = GenerativeTrainingArguments
    args: GenerativeTrainingArguments
    loss: TranslationElbo  # type: ignore[assignment]

    def __init__(
        self,
        model: SentenceTransformer,
        args: GenerativeTrainingArguments,
        train_dataset: PairStore,
        loss: TranslationElbo,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Set up a training run.

        Args:
            model: the semantic encoder of the loss.
            args: arguments of the run.
            train_dataset: the pairs, of two languages with one vocabulary.
            loss: encoders, decoders and the objective.
            kwargs: further arguments of `SentenceTransformerTrainer`, e.g. `evaluator` and `callbacks`.

        Raises:
            SettingsError: a sentence that is longer than a batch, or a store with a vocabulary for each side.
            ModelDirectoryError: a model that no model directory can hold.
        """
        self.store = train_dataset
        first, second = train_dataset.tokenizers
        if not first.shares_rows(second):
            raise SettingsError(
                f"{train_dataset.path}: separate vocabularies for the two sides; prepare the text with a joint "
                "vocabulary"
            )
        self._max_length = loss.generator.max_length
        rows = len(train_dataset) - min(args.held_out, len(train_dataset) // 20)
        self._held_out = np.arange(rows, len(train_dataset))
        self.batches = TokenBatches(rows, self._lengths, args.batch_tokens, args.seed)
        self._sums: dict[str, Tensor | float] = {}
        self._means: deque[Tensor] = deque()
        self._warned = False
        super().__init__(model, args, train_dataset, loss, **kwargs)

    def _lengths(self, begin: int, end: int) -> NDArray[np.int64]:
        """The longer side of rows, in ids that are read, ends included."""
        counts = [self.store.lengths(side, begin, end) for side in SIDES]
        return np.minimum(np.maximum(*counts) + 1, self._max_length)

    @property
    def batches_per_epoch(self) -> int:
        """Updates of an epoch."""
        return -(-len(self.batches) // self.args.accumulate)

    def make_step(self, model: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, int]:  # noqa: ANN401
        """Make the forward and backward passes of an update's batches; gradients are those of all processes."""
        started = time.perf_counter()
        numbers = self._numbers(self.state.global_step)
        batches = [self.batches.at(number) for number in numbers]
        pairs = sum(map(len, batches))
        torch.manual_seed(seed_of(self.args.seed, self.state.global_step, self.args.process_index))
        self.loss.train()
        loss = torch.zeros((), device=self.args.device)
        for number, rows in zip(numbers, batches, strict=True):
            if (terms := self._backward(number, rows, pairs)) is not None:
                loss += terms.loss.detach() / pairs
                self._note(terms)
        sum_gradients(self.loss.parameters())
        sum_over_processes(loss)
        self._add("pairs", pairs / self.args.world_size)
        self._add("seconds", (time.perf_counter() - started) / self.args.world_size)
        return loss, pairs

    def _numbers(self, step: int) -> range:
        """The batches of an update, by their number in the run; the last of an epoch may have fewer."""
        epoch, update = divmod(step, self.batches_per_epoch)
        first, size = epoch * len(self.batches), self.args.accumulate
        return range(first + update * size, first + min((update + 1) * size, len(self.batches)))

    def _backward(self, number: int, rows: NDArray[np.int64], pairs: int) -> ElboTerms | None:
        """The passes of this process's share of a batch; None if it has none."""
        process, processes = self.args.process_index, self.args.world_size
        if process >= len(rows):
            return None
        device, batches = self.args.device, self._sides(rows[process::processes])
        source = torch.Generator().manual_seed(seed_of(self.args.seed, number, -1))
        noise = torch.randn(len(rows), *self.loss.noise_shape, generator=source)[process::processes].to(device)
        annealing = annealed(self.state.global_step, self.args.anneal_updates)
        with torch.autocast(device.type, torch.bfloat16, enabled=self.args.in_bfloat16):
            terms = self.loss(batches, self.loss.inferring_side(number), noise, annealing)
        (terms.loss / pairs).backward()
        self._add("pieces", sum(len(batch.targets) for batch in batches.values()))
        return terms

    def _sides(self, rows: NDArray[np.int64]) -> dict[Side, SentenceBatch]:
        special = self.loss.generator.special
        return {
            side: SentenceBatch.of(*self.store.take(side, rows), special, self._max_length).to(self.args.device)
            for side in SIDES
        }

    # Evaluation.

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Evaluate as `StoreTrainer` does, and measure the loss of the pairs that are not trained on."""
        metrics = super().evaluate(*args, **kwargs)
        if len(self._held_out):
            found = {HELD_OUT_LOSS: self.held_out_loss()}
            self.log(dict(found))
            metrics |= found
        return metrics

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """Mean loss of the pairs that are not trained on, in nats a pair: full KL terms, no label smoothing.

        Noise of the latent variables is the same each time, and so is the result for the same weights.
        """
        training = self.loss.training
        self.loss.eval()
        lengths = np.concatenate([self._lengths(row, row + 1) for row in self._held_out.tolist()])
        rows = self._held_out[np.argsort(lengths, kind="stable")]
        source, total = torch.Generator().manual_seed(seed_of(self.args.seed, -1, -1)), 0.0
        for number, some in enumerate(np.array_split(rows, -(-len(rows) // _EVALUATED))):
            noise = torch.randn(len(some), *self.loss.noise_shape, generator=source).to(self.args.device)
            parts = self.loss(self._sides(some), self.loss.inferring_side(number), noise).parts
            total += sum(
                float(parts[name]) for name in ("reconstruction", "translation", "divergence") if name in parts
            )
        self.loss.train(training)
        return total / len(rows)

    # What is logged.

    def _add(self, name: str, value: Tensor | float) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + value

    def _note(self, terms: ElboTerms) -> None:
        self._add("total", terms.loss.detach())
        for name, part in terms.parts.items():
            self._add(name, part)  # as a tensor: a GPU is not waited for
        self._means.append(terms.means)
        while sum(map(len, self._means)) - len(self._means[0]) >= _MEANS_KEPT:
            self._means.popleft()

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the loss and its parts, in nats a pair, and how many semantic units are active.

        All are means over the pairs since the last line, so that `reconstruction`, `translation`, `smoothing` and
        `divergence` add up to `loss`.
        """
        if "loss" in logs and self._sums:
            there = [name for name in _PARTS if name in self._sums]
            names = ("pairs", "seconds", "pieces", "total", *_PARTS)
            summed = torch.tensor([float(self._sums.get(name, 0.0)) for name in names], dtype=torch.float64)
            summed = summed.to(self.args.device if self.args.device.type != "mps" else "cpu")
            sum_over_processes(summed)
            self._sums = {}
            sums = dict(zip(names, summed.tolist(), strict=True))
            pairs, seconds, pieces = (sums[name] for name in ("pairs", "seconds", "pieces"))
            logs |= {name: sums[name] / max(pairs, 1.0) for name in there}
            logs["loss"] = sums["total"] / max(pairs, 1.0)
            logs["active_units"] = active_units(torch.cat(list(self._means))) if self._means else 0
            logs["pieces_per_second"] = pieces / max(seconds, 1e-9)
            self._warn_of_collapse(logs)
        super().log(logs, start_time)

    def _warn_of_collapse(self, logs: dict[str, float]) -> None:
        held = logs.get("kl_semantic", _COLLAPSED)
        if held >= _COLLAPSED or self._warned:
            return
        self._warned = True
        logger.warning(
            f"step {self.state.global_step}: the semantic variable holds {held:.2f} nats of a sentence and has "
            f"{logs['active_units']:.0f} active units: it collapses to the prior, and embeddings will mean nothing; "
            "raise anneal_updates, or translation_weight"
        )
