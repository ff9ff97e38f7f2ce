"""Training of the bilingual generative transformer and its baselines on a pair store (EMNLP 2020)."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import Tensor

from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.bilingual_generator import (
    BilingualGenerator,
    DecoderShape,
    active_units,
)
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import OBJECTIVES, SIDES, GenerativeSettings, Side
from st_paragram.families.bgt.token_batches import TokenBatches
from st_paragram.families.bgt.translation_elbo import TranslationElbo, annealed
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.transformer_encoder import (
    TransformerShape,
    special_ids,
    transformer_pipeline,
)
from st_paragram.learning.training.batch_order import seed_of
from st_paragram.learning.training.initial_rows import initial_rows
from st_paragram.learning.training.trainer import StoreTrainer, StoreTrainingArguments, arguments_of

logger = logging.getLogger(__name__)

_HELD_OUT_LOSS = "eval_held_out_loss"
_COLLAPSED = 0.5  # nats: below this, a semantic variable has no information about its sentence


def new_model(store: PairStore, settings: GenerativeSettings) -> SentenceTransformer:
    """Make the initial semantic encoder over the store's vocabulary."""
    tokenizer, other_tokenizer = store.tokenizers
    if not tokenizer.shares_rows(other_tokenizer):
        raise SettingsError(
            f"{store.path}: a vocabulary per side; prepare the text with a joint vocabulary"
        )
    if len(set(store.languages)) == 1:
        raise SettingsError(f"{store.path}: pairs of one language; a generative model needs two")
    model = _pipeline(tokenizer, settings)
    if settings.init:
        encoder: Any = model[0].model
        table = encoder.embed_tokens.weight
        rows = initial_rows(tokenizer, settings.init, settings.dim)
        # Marian multiplies rows by this root; the model's rows were initialized from N(0, 1)
        with torch.no_grad():
            table.copy_(rows * settings.dim**-0.5)
            table[special_ids(tokenizer).pad].zero_()
    return model


def _pipeline(tokenizer: Tokenizer, settings: GenerativeSettings) -> SentenceTransformer:
    device = None if settings.device == "auto" else settings.device
    return transformer_pipeline(
        tokenizer, _shape(settings, settings.encoder_layers), settings.latent_dim, device
    )


def _shape(settings: GenerativeSettings, layers: int) -> TransformerShape:
    sizes = (settings.heads, settings.ffn_dim, settings.dropout, settings.max_length)
    return TransformerShape(settings.dim, layers, *sizes)


def trainer(
    model: SentenceTransformer,
    store: PairStore,
    settings: GenerativeSettings,
    folder: Path,
    evaluator: BaseEvaluator | None = None,
    _: object = None,
) -> GenerativeTrainer:
    """Make the trainer of a run with checkpoints in `folder`, which evaluates regularly if there is
    an evaluator.
    """
    tokenizer, parts = store.tokenizer(), OBJECTIVES[settings.objective]
    shape = DecoderShape(
        _shape(settings, settings.decoder_layers),
        settings.latent_dim,
        parts.generators,
        parts.translators,
        at_attention="attention" in settings.injection,
        at_logits="logit" in settings.injection,
    )
    languages = {side: _pipeline(tokenizer, settings) for side in SIDES if parts.languages}
    loss = TranslationElbo(
        BilingualGenerator(model, languages, len(tokenizer), special_ids(tokenizer), shape),
        settings.objective,
        settings.latent,
        settings.label_smoothing,
        settings.translation_weight,
        settings.candidates,
    )
    logger.info(
        f"{settings.objective}: {sum(p.numel() for p in loss.parameters() if p.requires_grad):,}"
        " parameters"
    )
    held_out, others = 0 if evaluator is None else settings.held_out, {}
    if held_out:
        others = {
            "save_strategy": "steps" if settings.evaluate_steps else "epoch",
            "save_steps": settings.evaluate_steps or 500,
            "load_best_model_at_end": True,
            "metric_for_best_model": _HELD_OUT_LOSS,
            "greater_is_better": False,
        }
    arguments = arguments_of(
        StoreTrainingArguments,
        settings,
        folder,
        settings.warmup_updates,
        evaluator is not None,
        num_train_epochs=settings.epochs,
        max_grad_norm=settings.clip_norm,
        adam_beta2=0.98,
        logging_steps=50,
        logging_first_step=True,
        **others,
    )
    return GenerativeTrainer(model, arguments, store, loss, settings, held_out, evaluator=evaluator)


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
        run: GenerativeSettings,
        held_out: int = 0,
        **kwargs: Any,
    ) -> None:
        """Set up a run on all pairs except the last `held_out` (at most a twentieth, or one);
        `model` is the loss's.
        """
        counts = np.stack([store.lengths(side, 0, len(store)) for side in SIDES])
        # The length of each pair's longer side in ids, including the end; 0 for pairs that are left
        # out.
        self._lengths = np.minimum(counts.max(0) + 1, loss.generator.max_length).astype(np.int32)
        self._lengths[counts.min(0) < run.min_pieces] = 0
        outside = f"a sentence of fewer than {run.min_pieces} pieces"
        if run.max_pieces:
            self._lengths[counts.max(0) > run.max_pieces] = 0
            outside += f" or more than {run.max_pieces}"
        kept = np.flatnonzero(self._lengths)
        if len(kept) < len(store):
            logger.info(
                f"{len(store) - len(kept):,} of {len(store):,} pairs have {outside} and are"
                " left out"
            )
        if len(kept) < 2:
            raise SettingsError(
                f"{store.path}: {len(kept)} of {len(store):,} pairs left, the others have"
                f" {outside}; change the limits"
            )
        self._held_out = kept[len(kept) - min(held_out, max(len(kept) // 20, 1)) :]
        lengths = self._lengths[: self._held_out[0]] if len(self._held_out) else self._lengths
        self.batches = TokenBatches(lengths, run.batch_tokens or loss.parts.batch_tokens, args.seed)
        self.accumulate, self.anneal_updates = run.accumulate, run.anneal_updates
        self._sums: dict[str, Any] = defaultdict(float)  # since the last line of the log
        self._means, self._warned = torch.empty(0), False
        super().__init__(model, args, store, loss, **kwargs)

    @property
    def batches_per_epoch(self) -> int:
        """Number of updates in an epoch."""
        return -(-len(self.batches) // self.accumulate)

    @property
    def trained(self) -> SentenceTransformer:
        """Return the pipeline with language encoders and decoders."""
        return GenerativeEncoder.of(
            self.model, self.store.languages, self.store.tokenizer(), self.loss.generator
        )

    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Run forward and backward passes on an update's batches; the last update of an epoch may
        have fewer.
        """
        started, args, device = time.perf_counter(), self.args, self.args.device
        epoch, update = divmod(step, self.batches_per_epoch)
        first, end = (
            epoch * len(self.batches) + update * self.accumulate,
            (epoch + 1) * len(self.batches),
        )
        numbers = range(first, min(first + self.accumulate, end))
        rows = [self.batches.at(number) for number in numbers]
        pairs = sum(map(len, rows))
        torch.manual_seed(seed_of(args.seed, step, 0))
        self.loss.train()
        total = torch.zeros((), device=device)
        for number, some in zip(numbers, rows, strict=True):
            batches, noise = self._sides(some), self._noise(len(some), number)
            with torch.autocast(device.type, torch.bfloat16, enabled=args.in_bfloat16):
                annealing = annealed(step, self.anneal_updates)
                terms = self.loss(batches, self.loss.inferring_side(number), noise, annealing)
            (terms.loss / pairs).backward()
            total += terms.loss.detach() / pairs
            for name, part in {"loss": terms.loss.detach(), **terms.parts}.items():
                self._sums[name] += part  # as a tensor, without waiting for a GPU
            self._sums["pieces"] += sum(len(batch.targets) for batch in batches.values())
            # enough to show active units
            self._means = torch.cat([self._means.to(device), terms.means])[-2000:]
        self._sums["pairs"] += pairs
        self._sums["seconds"] += time.perf_counter() - started
        return total, pairs

    def _sides(self, rows: NDArray[np.int64]) -> dict[Side, SentenceBatch]:
        generator = self.loss.generator
        read = (generator.special, generator.max_length)
        return {
            side: SentenceBatch.of(*self.store.take(side, rows), *read).to(self.args.device)
            for side in SIDES
        }

    def _noise(self, rows: int, number: int) -> Tensor:
        source = torch.Generator().manual_seed(seed_of(self.args.seed, number, -1))
        return torch.randn(rows, *self.loss.noise_shape, generator=source).to(self.args.device)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate like `StoreTrainer`, and measure the loss on the held-out pairs."""
        metrics = super().evaluate(*args, **kwargs)
        if len(self._held_out):
            metrics[_HELD_OUT_LOSS] = self.held_out_loss()
            self.log({_HELD_OUT_LOSS: metrics[_HELD_OUT_LOSS]})
        return metrics

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """Compute the mean loss on the held-out pairs in nats per pair, with full KL terms and no
        label smoothing.

        The latent noise is the same each time, and so is the result for the same weights.
        """
        training = self.loss.training
        self.loss.eval()
        rows = self._held_out[np.argsort(self._lengths[self._held_out], kind="stable")]
        noise, total = self._noise(len(rows), -1), 0.0
        for number, places in enumerate(np.array_split(np.arange(len(rows)), -(-len(rows) // 32))):
            parts = self.loss(
                self._sides(rows[places]), self.loss.inferring_side(number), noise[places]
            ).parts
            total += sum(
                float(parts.get(name, 0.0))
                for name in ("reconstruction", "translation", "divergence")
            )
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
            pairs, rate = sums.pop("pairs"), sums.pop("pieces") / sums.pop("seconds")
            logs |= {name: value / pairs for name, value in sums.items()}
            logs |= {"active_units": active_units(self._means), "pieces_per_second": rate}
            if logs.get("kl_semantic", _COLLAPSED) < _COLLAPSED and not self._warned:
                self._warned = True
                logger.warning(
                    f"step {self.state.global_step}: the semantic variable holds"
                    f" {logs['kl_semantic']:.2f} nats of a sentence and has {logs['active_units']}"
                    " active units: it collapses to the prior, and embeddings will mean nothing;"
                    " raise anneal_updates, or translation_weight"
                )
        super().log(logs, start_time)
