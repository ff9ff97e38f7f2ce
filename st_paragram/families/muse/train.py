"""A training run of a dual encoder from scratch: the initial model, and its trainer (ACL 2020)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import Tensor, nn

from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.dual_encoder_trainer import DualEncoderTrainer
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
from st_paragram.families.muse.settings import DualEncoderSettings, MuseData
from st_paragram.families.muse.t5_encoder import t5_modules
from st_paragram.families.muse.towers import SENTENCE, TaskHeads, towers
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.learning.modules.transformer_encoder import TransformerShape, special_ids
from st_paragram.learning.training.initial_rows import initial_rows
from st_paragram.learning.training.trainer import StoreTrainingArguments, arguments_of

_LOGGED = 100  # updates between two log lines
_EVALUATIONS = 10  # default number of evaluations and checkpoints in a run
_SAMPLE = 512  # sentences to measure the lengths of bags and network outputs


def new_model(store: PairStore, settings: DualEncoderSettings) -> DualEncoder:
    """Make the initial dual encoder over the store's vocabulary."""
    tokenizer, second_tokenizer = store.tokenizers
    if not tokenizer.shares_rows(second_tokenizer):
        raise SettingsError(
            f"{store.path}: separate vocabularies for the two sides; prepare the text with a joint"
            " vocabulary"
        )
    modules = _new_encoder(tokenizer, settings)
    modules.append(towers(settings.dim))
    device = None if settings.device == "auto" else settings.device
    heads = TaskHeads(settings.dim)
    model = DualEncoder.of(modules, heads, settings.context_length, device=device)
    if settings.keep_bag:
        _set_gate(model, store, settings.gate)
    return model


def _new_encoder(tokenizer: Tokenizer, settings: DualEncoderSettings) -> list[nn.Module]:
    """Make the modules from text to sentence embeddings."""
    special = special_ids(tokenizer)
    if settings.init:
        table = initial_rows(tokenizer, settings.init, settings.dim)
    else:
        table = torch.randn(len(tokenizer), settings.dim)
    # ids that are not text, and the unknown id
    table[[special.pad, special.end, tokenizer.unknown_id]] = 0.0
    if settings.architecture == "cnn":
        encoder = ConvolutionEncoder(
            settings.dim,
            settings.filters,
            settings.layers,
            keep_bag=settings.keep_bag,
            max_length=settings.max_length,
        )
        return [token_embedding(tokenizer, weights=table, dropout=settings.dropout), encoder]
    shape = TransformerShape(
        dim=settings.dim,
        layers=settings.layers,
        heads=settings.heads,
        ffn_dim=settings.ffn_dim,
        dropout=settings.dropout,
        max_length=settings.max_length,
    )
    return t5_modules(tokenizer, shape, settings.keep_bag, table)


@torch.no_grad()
def _set_gate(model: DualEncoder, store: PairStore, gate: float) -> None:
    """Set the network's weight so that its output is `gate` times as long as the bag.

    The lengths are measured on sentences of the store.
    """
    bag_weight, network_weight = _sum_weights(model)
    sentences = store.take("a", np.arange(min(_SAMPLE, len(store))))
    model.eval()

    def mean_length(bag: float, network: float) -> float:
        bag_weight.fill_(bag)
        network_weight.fill_(network)
        return float(model.vectors_of_ids(sentences)[0].norm(dim=1).mean())

    bag_length = mean_length(bag=1.0, network=0.0)
    network_length = mean_length(bag=0.0, network=1.0)
    bag_weight.fill_(1.0)
    network_weight.fill_(gate * bag_length / max(network_length, 1e-9))


def _sum_weights(model: DualEncoder) -> tuple[Tensor, Tensor]:
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
    evaluate_steps = settings.evaluate_steps or -(-settings.steps // _EVALUATIONS)
    settings = replace(settings, evaluate_steps=evaluate_steps)
    arguments = arguments_of(
        StoreTrainingArguments,
        settings,
        folder,
        warmup=min(settings.warmup_updates, settings.steps),
        evaluate=evaluator is not None,
        num_train_epochs=1.0,
        per_device_train_batch_size=settings.batch_size,
        max_grad_norm=settings.clip_norm,
        router_mapping=dict.fromkeys(SIDES, SENTENCE),  # required by the trainer, but not used
        logging_steps=_LOGGED,
        logging_first_step=True,
        save_strategy="steps",
        save_steps=evaluate_steps,
    )
    data = data or MuseData()
    return DualEncoderTrainer(model, arguments, store, settings, data, evaluator=evaluator)
