"""The objective of multilingual dual encoders: several tasks, two architectures (ACL 2020)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import Tensor, nn

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.dual_encoder_tasks import DualEncoderTasks
from st_paragram.families.muse.sentence_transformers_encoder import ConvolutionShape, DualEncoder, DualEncoderValues
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.t5_encoder import t5_modules, table_of
from st_paragram.families.muse.task_data import TaskRows, all_rows, sources
from st_paragram.families.muse.task_sampler import TaskSampler
from st_paragram.families.muse.towers import SENTENCE, TaskHeads, towers
from st_paragram.families.muse.trainer import DualEncoderTrainer, DualEncoderTrainingArguments
from st_paragram.families.muse.training_data import OtherTasks
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.learning.modules.transformer_encoder import TransformerShape, special_ids
from st_paragram.learning.training.arguments import arguments_of
from st_paragram.learning.training.initial_rows import initial_rows

logger = logging.getLogger(__name__)

#: Whether what is logged of a run is kept with the model: each task's loss over time is reported.
HAS_HISTORY = True

_LOGGED = 100  # updates between two lines
_LOOKS = 10  # evaluations and checkpoints of a run, if nothing else is asked for
_SAMPLE = 512  # sentences that show how long bags and the network's vectors are


def new_model(store: PairStore, settings: DualEncoderSettings) -> DualEncoder:
    """The dual encoder over the store's vocabulary that training begins with.

    Raises:
        SettingsError: The store has no joint vocabulary of sentencepiece, or the model to begin with does not fit.
        ModelDirectoryError: There is no such model, or no averaging model.
    """
    tokenizer = _tokenizer(store)
    table = _table(tokenizer, settings)
    modules = _cnn(tokenizer, settings, table) if settings.architecture == "cnn" else _t5(tokenizer, settings, table)
    values = DualEncoderValues(
        dict(tokenizer.options),
        settings.dim,
        settings.max_length,
        settings.context_length,
        convolution=_shape(settings) if settings.architecture == "cnn" else None,
    )
    device = None if settings.device == "auto" else settings.device
    model = DualEncoder.of([*modules, towers(settings.dim)], tokenizer, TaskHeads(settings.dim), values, device)
    if settings.keep_bag:
        _set_gate(model, store, settings.gate)
    return model


def _tokenizer(store: PairStore) -> Tokenizer:
    first, second = store.tokenizers
    if not first.shares_rows(second):
        raise SettingsError(
            f"{store.path}: separate vocabularies for the two sides; prepare the text with a joint vocabulary"
        )
    try:
        special_ids(first)
    except SettingsError as error:
        raise SettingsError(f"{store.path}: {error}") from error
    return first


def _table(tokenizer: Tokenizer, settings: DualEncoderSettings) -> Tensor:
    """The embeddings to begin with, float32 (V, D); what is not text, or unknown, is zero."""
    if settings.init:
        table = initial_rows(tokenizer, settings.init, settings.dim)
    else:
        table = torch.randn(len(tokenizer), settings.dim)
    special = special_ids(tokenizer)
    table[[special.pad, special.end, tokenizer.unknown_id]] = 0.0
    return table


def _cnn(tokenizer: Tokenizer, settings: DualEncoderSettings, table: Tensor) -> list[nn.Module]:
    encoder = _shape(settings).encoder(settings.dim)
    return [token_embedding(tokenizer, weights=table, dropout=settings.dropout), encoder]


def _shape(settings: DualEncoderSettings) -> ConvolutionShape:
    return ConvolutionShape(settings.filters, settings.layers, settings.keep_bag)


def _t5(tokenizer: Tokenizer, settings: DualEncoderSettings, table: Tensor) -> list[nn.Module]:
    sizes = (settings.dim, settings.layers, settings.heads, settings.ffn_dim, settings.dropout, settings.max_length)
    modules = t5_modules(tokenizer, TransformerShape(*sizes), settings.keep_bag)
    with torch.no_grad():
        table_of(modules[0]).copy_(table)
        # An empty text is its end alone: short enough not to count in others, but with a direction.
        table_of(modules[0])[special_ids(tokenizer).end].normal_(std=0.01)
    return modules


@torch.no_grad()
def _set_gate(model: DualEncoder, store: PairStore, gate: float) -> None:
    """Weigh the network's part so that it is `gate` times as long as the bag on sentences of the store."""
    bag, network = _weights(model)
    lengths = []
    for values in ((1.0, 0.0), (0.0, 1.0)):
        bag.fill_(values[0])
        network.fill_(values[1])
        lengths.append(_length(model, store))
    bag.fill_(1.0)
    network.fill_(gate * lengths[0] / max(lengths[1], 1e-9))


def _weights(model: DualEncoder) -> tuple[Tensor, Tensor]:
    """What the bag and the network's vector are multiplied by before they are added up."""
    encoder = model[1]
    if isinstance(encoder, ConvolutionEncoder):
        return encoder.bag_scale, encoder.gate
    layers = cast("WeightedLayerPooling", encoder).layer_weights.data
    return layers[0], layers[-1]


def _length(model: DualEncoder, store: PairStore) -> float:
    """The mean length of vectors before they are made unit vectors, on some sentences."""
    model.eval()
    rows = np.arange(min(_SAMPLE, len(store)))
    return float(model.vectors.raw([store.take("a", rows)])[0].norm(dim=1).mean())


def trainer(
    model: DualEncoder,
    store: PairStore,
    settings: DualEncoderSettings,
    folder: Path,
    evaluator: BaseEvaluator | None = None,
    tasks: OtherTasks | None = None,
) -> DualEncoderTrainer:
    """The trainer of a run.

    Args:
        model: as `new_model` makes it.
        store: translations.
        settings: of the run.
        folder: for checkpoints.
        evaluator: looks at the model now and then; without one nothing is evaluated.
        tasks: what else there is to train on.

    Raises:
        SettingsError: settings and data contradict each other.
    """
    rows = all_rows(store, tasks or OtherTasks())
    _check_vocabulary(model, rows)
    begun_with = model.vectors.table.detach().cpu().float().numpy().copy()
    rows, drawn = sources(rows, settings, begun_with)
    sampler = TaskSampler(drawn, settings.batch_size, settings.length_buckets, settings.similar_batches, settings.seed)
    loss = DualEncoderTasks(model.vectors, model.heads, settings.scale, settings.margin, settings.qa_margin)
    _tell(loss, rows, sampler.shares)
    made = DualEncoderTrainer(
        model,
        arguments(settings, folder, evaluator is not None),
        rows,
        sampler,
        settings.steps,
        loss,
        evaluator=evaluator,
    )
    model.trained_on({each.task for each in rows})
    return made


def _check_vocabulary(model: DualEncoder, rows: Sequence[TaskRows]) -> None:
    for store in (store for each in rows for store in (each.store, each.contexts) if store is not None):
        if not all(tokenizer.shares_rows(model.sentencepiece) for tokenizer in store.tokenizers):
            raise SettingsError(f"{store.path}: of another vocabulary than the model's; make it with the model's")


def _tell(loss: DualEncoderTasks, rows: Sequence[TaskRows], shares: Sequence[float]) -> None:
    parameters = sum(parameter.numel() for parameter in loss.parameters() if parameter.requires_grad)
    logger.info(f"{parameters:,} parameters; steps are shared out among")
    for each, share in zip(rows, shares, strict=True):
        logger.info(f"  {each.name}: {len(each):,} pairs, {share:.1%} of the steps")


def arguments(settings: DualEncoderSettings, folder: Path, evaluate: bool = True) -> DualEncoderTrainingArguments:
    """The trainer's arguments for these settings; `evaluate` now and then, or never."""
    every = settings.evaluate_steps or -(-settings.steps // _LOOKS)
    return arguments_of(
        DualEncoderTrainingArguments,
        settings,
        folder,
        min(settings.warmup_updates, settings.steps),
        evaluate,
        max_grad_norm=settings.clip_norm,
        mined_negatives=settings.negatives == "mined",
        router_mapping=dict.fromkeys(SIDES, SENTENCE),  # the trainer asks for one, and routes nothing
        logging_steps=_LOGGED,
        logging_first_step=True,
        eval_strategy="steps" if evaluate else "no",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
    )


def trained(trainer: DualEncoderTrainer) -> SentenceTransformer:
    """The model to save: the one that was trained."""
    return trainer.model
