"""Training of generative models on batches of pairs of similar length (EMNLP 2020)."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.bilingual_generator import active_units
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import SIDES, GenerativeSettings, Side
from st_paragram.families.bgt.token_batches import TokenBatches
from st_paragram.families.bgt.translation_elbo import ElboTerms, TranslationElbo, annealed
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.training.batch_order import seed_of
from st_paragram.learning.training.trainer import StoreTrainer, StoreTrainingArguments

logger = logging.getLogger(__name__)

HELD_OUT_LOSS = "eval_held_out_loss"
_COLLAPSED = 0.5  # nats: below this, a semantic variable has no information about its sentence
_UNIT_SENTENCES = 2000  # the last sentences of a run show which units are active
_HELD_OUT_BATCH = 32
_UNSMOOTHED = ("reconstruction", "translation", "divergence")  # parts of the held-out loss


class GenerativeTrainer(StoreTrainer):
    """Train on batches of pairs of similar length, each limited by a budget of tokens.

    An update uses `accumulate` batches, and its loss is the mean over their pairs. Latent noise and
    dropout depend only on the seed and the update, so a resumed run gives identical results.
    """

    loss: TranslationElbo
    keeps_history: ClassVar[bool] = True

    def __init__(
        self,
        model: SentenceTransformer,
        args: StoreTrainingArguments,
        store: PairStore,
        loss: TranslationElbo,
        settings: GenerativeSettings,
        held_out: int = 0,
        **kwargs: Any,
    ) -> None:
        """Set up a run on all pairs except the last `held_out`; `model` is the loss's.

        At most a twentieth of the pairs, or one, is held out.
        """
        self._lengths = _kept_lengths(store, settings, loss.generator.max_length)
        kept = np.flatnonzero(self._lengths)
        held_out = min(held_out, max(len(kept) // 20, 1))
        self._held_out = kept[len(kept) - held_out :]
        trained = self._held_out[0] if held_out else len(store)
        budget = settings.batch_tokens or loss.objective.batch_tokens
        self.batches: TokenBatches = TokenBatches(self._lengths[:trained], budget, args.seed)
        self.accumulate: int = settings.accumulate
        self.anneal_updates: int = settings.anneal_updates
        self._sums: dict[str, Any] = defaultdict(float)  # since the last line of the log
        self._means = torch.empty(0)
        self._warned = False
        super().__init__(model, args, store, loss, **kwargs)

    @property
    def batches_per_epoch(self) -> int:
        """Number of updates in an epoch."""
        return -(-len(self.batches) // self.accumulate)

    @property
    def trained(self) -> SentenceTransformer:
        """Return the pipeline with language encoders and decoders."""
        tokenizer = self.store.tokenizer()
        return GenerativeEncoder.of(
            self.model, self.store.languages, tokenizer, self.loss.generator
        )

    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Run forward and backward passes on an update's batches.

        The last update of an epoch may have fewer.
        """
        started = time.perf_counter()
        epoch, update = divmod(step, self.batches_per_epoch)
        first = epoch * len(self.batches) + update * self.accumulate
        end = min(first + self.accumulate, (epoch + 1) * len(self.batches))
        rows_of_batches = {number: self.batches.at(number) for number in range(first, end)}
        pairs = sum(len(rows) for rows in rows_of_batches.values())
        annealing = annealed(step, self.anneal_updates)
        torch.manual_seed(seed_of(self.args.seed, step, 0))
        self.loss.train()
        total = torch.zeros((), device=self.args.device)
        for number, rows in rows_of_batches.items():
            batches = self._sides(rows)
            noise = self._noise(len(rows), number)
            inferring = self.loss.inferring_side(number)
            with torch.autocast(total.device.type, torch.bfloat16, enabled=self.args.in_bfloat16):
                terms = self.loss(batches, inferring, noise, annealing)
            (terms.loss / pairs).backward()
            total += terms.loss.detach() / pairs
            self._add(terms)
            self._sums["pieces"] += sum(len(batch.targets) for batch in batches.values())
        self._sums["pairs"] += pairs
        self._sums["seconds"] += time.perf_counter() - started
        return total, pairs

    def _add(self, terms: ElboTerms) -> None:
        """Add the terms of a batch for the log, as tensors, without waiting for a GPU."""
        self._sums["loss"] += terms.loss.detach()
        for name, part in terms.parts.items():
            self._sums[name] += part
        means = torch.cat([self._means.to(terms.means.device), terms.means])
        self._means = means[-_UNIT_SENTENCES:]

    def _sides(self, rows: NDArray[np.int64]) -> dict[Side, SentenceBatch]:
        generator = self.loss.generator
        batches = {}
        for side in SIDES:
            ids, offsets = self.store.take(side, rows)
            batch = SentenceBatch.of(ids, offsets, generator.special, generator.max_length)
            batches[side] = batch.to(self.args.device)
        return batches

    def _noise(self, pairs: int, number: int) -> Tensor:
        """Draw the latent noise of a batch, float (pairs, 3, k)."""
        random = torch.Generator().manual_seed(seed_of(self.args.seed, number, -1))
        latent_dim = self.loss.generator.shape.latent_dim
        return torch.randn(pairs, 3, latent_dim, generator=random).to(self.args.device)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate like `StoreTrainer`, and measure the loss on the held-out pairs."""
        metrics = super().evaluate(*args, **kwargs)
        if len(self._held_out):
            metrics[HELD_OUT_LOSS] = self.held_out_loss()
            self.log({HELD_OUT_LOSS: metrics[HELD_OUT_LOSS]})
        return metrics

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """Compute the mean loss on the held-out pairs in nats per pair.

        KL terms have their full weight, and there is no label smoothing. The latent noise is the
        same each time, and so is the result for the same weights.
        """
        training = self.loss.training
        self.loss.eval()
        order = np.argsort(self._lengths[self._held_out], kind="stable")
        rows = self._held_out[order]
        noise = self._noise(len(rows), -1)
        total = 0.0
        batches = -(-len(rows) // _HELD_OUT_BATCH)
        for number, places in enumerate(np.array_split(np.arange(len(rows)), batches)):
            inferring = self.loss.inferring_side(number)
            parts = self.loss(self._sides(rows[places]), inferring, noise[places]).parts
            unsmoothed = [parts.get(name, 0.0) for name in _UNSMOOTHED]
            total += sum(float(part) for part in unsmoothed)
        self.loss.train(training)
        return total / len(rows)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the loss and its parts, in nats per pair, and the number of active semantic units.

        All are means over the pairs since the last line, so that `reconstruction`, `translation`,
        `smoothing` and `divergence` add up to `loss`.
        """
        if "loss" in logs and self._sums:
            sums = {name: float(value) for name, value in self._sums.items()}
            self._sums.clear()
            pairs = sums.pop("pairs")
            pieces_per_second = sums.pop("pieces") / sums.pop("seconds")
            logs |= {name: value / pairs for name, value in sums.items()}
            logs["active_units"] = active_units(self._means)
            logs["pieces_per_second"] = pieces_per_second
            self._warn_of_collapse(logs)
        super().log(logs, start_time)

    def _warn_of_collapse(self, logs: dict[str, float]) -> None:
        """Warn once if the semantic variable has no information about sentences."""
        nats = logs.get("kl_semantic", _COLLAPSED)
        if nats >= _COLLAPSED or self._warned:
            return
        self._warned = True
        logger.warning(
            f"step {self.state.global_step}: the semantic variable holds {nats:.2f} nats of a"
            f" sentence and has {logs['active_units']} active units: it collapses to the prior, and"
            " embeddings will mean nothing; raise anneal_updates, or translation_weight"
        )


def _kept_lengths(
    store: PairStore, settings: GenerativeSettings, max_length: int
) -> NDArray[np.int32]:
    """Return the length of each pair's longer side in ids, including the end.

    It is 0 for pairs that are left out, since a side has too few or too many pieces.
    """
    counts = np.stack([store.lengths(side, 0, len(store)) for side in SIDES])
    lengths = np.minimum(counts.max(0) + 1, max_length).astype(np.int32)
    lengths[counts.min(0) < settings.min_pieces] = 0
    limits = f"a sentence of fewer than {settings.min_pieces} tokens"
    if settings.max_pieces:
        lengths[counts.max(0) > settings.max_pieces] = 0
        limits += f" or more than {settings.max_pieces}"
    kept = np.count_nonzero(lengths)
    if kept < 2:
        raise SettingsError(
            f"{store.path}: {kept:,} of {len(store):,} pairs left, the others have {limits}; change"
            " the limits"
        )
    if kept < len(store):
        left_out = len(store) - kept
        logger.info(f"{left_out:,} of {len(store):,} pairs have {limits} and are left out")
    return lengths
