"""Training of dual encoders from scratch: several tasks, two architectures (ACL 2020)."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import Tensor, nn

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.errors import SettingsError
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.losses import DualEncoderTasks
from st_paragram.families.muse.sampler import TaskSampler
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
from st_paragram.families.muse.settings import DualEncoderSettings, MuseData
from st_paragram.families.muse.t5_encoder import t5_modules
from st_paragram.families.muse.tasks import all_rows
from st_paragram.families.muse.towers import SENTENCE, TaskHeads, towers
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.learning.modules.transformer_encoder import TransformerShape, special_ids
from st_paragram.learning.training.batch_order import seed_of
from st_paragram.learning.training.initial_rows import initial_rows
from st_paragram.learning.training.trainer import StoreTrainer, StoreTrainingArguments, arguments_of

logger = logging.getLogger(__name__)

_LOGGED = 100  # updates between two log lines
_LOOKS = 10  # default number of evaluations and checkpoints in a run
_SAMPLE = 512  # sentences to measure the lengths of bags and network outputs


def new_model(store: PairStore, settings: DualEncoderSettings) -> DualEncoder:
    """Make the initial dual encoder over the store's vocabulary."""
    tokenizer, second = store.tokenizers
    if not tokenizer.shares_rows(second):
        raise SettingsError(
            f"{store.path}: separate vocabularies for the two sides; prepare the text with a joint"
            " vocabulary"
        )
    special, dim = special_ids(tokenizer), settings.dim
    table = (
        initial_rows(tokenizer, settings.init, dim)
        if settings.init
        else torch.randn(len(tokenizer), dim)
    )
    # ids that are not text, and the unknown id
    table[[special.pad, special.end, tokenizer.unknown_id]] = 0.0
    modules: list[nn.Module]
    if settings.architecture == "cnn":
        sizes = (dim, settings.filters, settings.layers)
        encoder = ConvolutionEncoder(
            *sizes, keep_bag=settings.keep_bag, max_length=settings.max_length
        )
        modules = [token_embedding(tokenizer, weights=table, dropout=settings.dropout), encoder]
    else:
        shape = TransformerShape(
            dim,
            settings.layers,
            settings.heads,
            settings.ffn_dim,
            settings.dropout,
            settings.max_length,
        )
        modules = t5_modules(tokenizer, shape, settings.keep_bag, table)
    device = None if settings.device == "auto" else settings.device
    model = DualEncoder.of(
        [*modules, towers(dim)], TaskHeads(dim), settings.context_length, device=device
    )
    if settings.keep_bag:
        _set_gate(model, store, settings.gate)
    return model


@torch.no_grad()
def _set_gate(model: DualEncoder, store: PairStore, gate: float) -> None:
    """Set the network's weight so that its output is `gate` times as long as the bag on sentences
    of the store.
    """
    bag, network = weights(model)
    sentences = store.take("a", np.arange(min(_SAMPLE, len(store))))
    model.eval()
    lengths = []
    for parts in ((1.0, 0.0), (0.0, 1.0)):
        bag.fill_(parts[0])
        network.fill_(parts[1])
        lengths.append(float(model.vectors_of_ids(sentences)[0].norm(dim=1).mean()))
    bag.fill_(1.0)
    network.fill_(gate * lengths[0] / max(lengths[1], 1e-9))


def weights(model: DualEncoder) -> tuple[Tensor, Tensor]:
    """Return the weights of the bag and of the network's output in their sum."""
    encoder = model[1]
    if isinstance(encoder, ConvolutionEncoder):
        return encoder.bag_scale, encoder.gate
    layers = cast("WeightedLayerPooling", encoder).layer_weights.data
    return layers[0], layers[-1]


def trainer(
    model: DualEncoder,
    store: PairStore,
    settings: DualEncoderSettings,
    folder: Path,
    evaluator: BaseEvaluator | None,
    data: MuseData | None,
) -> DualEncoderTrainer:
    """Make the trainer of a run on a store of translations and `data`."""
    every, evaluate = settings.evaluate_steps or -(-settings.steps // _LOOKS), evaluator is not None
    arguments = arguments_of(
        StoreTrainingArguments,
        settings,
        folder,
        min(settings.warmup_updates, settings.steps),
        evaluate,
        num_train_epochs=1.0,
        per_device_train_batch_size=settings.batch_size,
        max_grad_norm=settings.clip_norm,
        router_mapping=dict.fromkeys(SIDES, SENTENCE),  # required by the trainer, but not used
        logging_steps=_LOGGED,
        logging_first_step=True,
        eval_strategy="steps" if evaluate else "no",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
    )
    return DualEncoderTrainer(
        model, arguments, store, settings, data or MuseData(), evaluator=evaluator
    )


class DualEncoderTrainer(StoreTrainer):
    """Train on batches of one task and language each, drawn by a sampler.

    A run is one epoch of the given number of steps. Dropout depends only on the seed and the step,
    so a resumed run gives identical results.
    """

    keeps_history = True
    loss: DualEncoderTasks

    def __init__(
        self,
        model: DualEncoder,
        args: StoreTrainingArguments,
        store: PairStore,
        settings: DualEncoderSettings,
        more: MuseData,
        **kwargs: Any,
    ) -> None:
        """Set up a run on a store of translations and `more` tasks; `kwargs` are `StoreTrainer`'s."""
        rows = all_rows(store, more.tasks, more.languages, settings)
        self.rows = [each for each in rows if settings.shares[each.task] > 0]
        if not self.rows:
            raise SettingsError(
                "no task has both data and a share of the steps; add data, or change the shares"
            )
        batches = (settings.batch_size, settings.length_buckets, settings.seed)
        self.sampler = TaskSampler(self.rows, settings.shares, settings.language_power, *batches)
        self._steps, self._sums = settings.steps, defaultdict[str, "Tensor | float"](float)
        loss = DualEncoderTasks(model, settings.scale, settings.margin, settings.qa_margin)
        super().__init__(model, args, store, loss, **kwargs)
        self.task_sizes = {each.name: len(each) for each in self.rows if each.digest}
        model.trained_on({each.task for each in self.rows})
        logger.info(
            f"{sum(each.numel() for each in loss.parameters()):,} parameters; shares of the steps:"
        )
        for each, probability in zip(self.rows, self.sampler.probabilities, strict=True):
            logger.info(f"  {each.name}: {len(each):,} pairs, {probability:.1%} of the steps")

    @property
    def batches_per_epoch(self) -> int:
        """Number of steps in the run, since tasks and languages are drawn without end."""
        return self._steps

    @property
    def contents(self) -> list[list[Any]]:
        """Return the digests of the store and the files, and their numbers of rows."""
        return [*super().contents, *([each.digest, len(each)] for each in self.rows if each.digest)]

    def make_step(self, step: int) -> tuple[Tensor, int]:
        """Run the forward and backward pass of a batch."""
        started = time.perf_counter()
        number, rows = self.sampler.at(step)
        torch.manual_seed(seed_of(self.args.seed, step, 0))
        self.loss.train()
        loss, right = self.loss(self.rows[number].batch(rows), self.args.in_bfloat16)
        loss.backward()
        task = self.rows[number].task
        self._sums[f"loss_{task}"] += loss.detach()
        self._sums[f"steps_{task}"] += 1
        if right is not None:
            self._sums["right"] += right / len(rows)
        self._sums["pairs"] += len(rows)
        self._sums["seconds"] += time.perf_counter() - started
        return loss.detach(), len(rows)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log each task's mean loss since the last line, and the share of correct inference labels."""
        if "loss" in logs and self._sums:
            sums = {name: float(value) for name, value in self._sums.items()}
            self._sums.clear()
            steps = {
                name.removeprefix("steps_"): count
                for name, count in sums.items()
                if name.startswith("steps_")
            }
            logs |= {task: sums[f"loss_{task}"] / count for task, count in steps.items()}
            if "nli" in steps:
                logs["nli_accuracy"] = sums["right"] / steps["nli"]
            logs["pairs_per_second"] = sums["pairs"] / max(sums["seconds"], 1e-9)
        super().log(logs, start_time)
