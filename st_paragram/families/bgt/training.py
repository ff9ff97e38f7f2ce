"""A training run of a generative model: the model to start from, and its trainer (EMNLP 2020)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator

from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, DecoderShape
from st_paragram.families.bgt.generative_trainer import HELD_OUT_LOSS, GenerativeTrainer
from st_paragram.families.bgt.settings import OBJECTIVES, SIDES, GenerativeSettings
from st_paragram.families.bgt.translation_elbo import TranslationElbo
from st_paragram.learning.modules.transformer_encoder import (
    TransformerShape,
    special_ids,
    transformer_pipeline,
)
from st_paragram.learning.training.initial_rows import initial_rows
from st_paragram.learning.training.trainer import StoreTrainingArguments, arguments_of

logger = logging.getLogger(__name__)


def new_model(store: PairStore, settings: GenerativeSettings) -> SentenceTransformer:
    """Make the initial semantic encoder over the store's vocabulary."""
    tokenizer, other_tokenizer = store.tokenizers
    if not tokenizer.shares_rows(other_tokenizer):
        raise SettingsError(
            f"{store.path}: a vocabulary per side; prepare the text with a joint vocabulary"
        )
    if len(set(store.languages)) == 1:
        raise SettingsError(f"{store.path}: pairs of one language; a generative model needs two")
    model = _new_encoder(tokenizer, settings)
    if settings.init:
        encoder: Any = model[0].model
        table = encoder.embed_tokens.weight
        rows = initial_rows(tokenizer, settings.init, settings.dim)
        # Marian multiplies rows by this root; the model's rows were initialized from N(0, 1)
        with torch.no_grad():
            table.copy_(rows * settings.dim**-0.5)
            table[special_ids(tokenizer).pad].zero_()
    return model


def trainer(
    model: SentenceTransformer,
    store: PairStore,
    settings: GenerativeSettings,
    folder: Path,
    evaluator: BaseEvaluator | None = None,
    data: object = None,
) -> GenerativeTrainer:
    """Make the trainer of a run with checkpoints in `folder`.

    It evaluates regularly if there is an evaluator.
    """
    loss = _new_loss(model, store.tokenizer(), settings)
    parameters = sum(part.numel() for part in loss.parameters() if part.requires_grad)
    logger.info(f"{settings.objective}: {parameters:,} parameters")
    held_out = 0 if evaluator is None else settings.held_out
    arguments = arguments_of(
        StoreTrainingArguments,
        settings,
        folder,
        warmup=settings.warmup_updates,
        evaluate=evaluator is not None,
        num_train_epochs=settings.epochs,
        max_grad_norm=settings.clip_norm,
        adam_beta2=0.98,
        logging_steps=50,
        logging_first_step=True,
        save_strategy="steps" if held_out and settings.evaluate_steps else "epoch",
        save_steps=settings.evaluate_steps or 500,
        load_best_model_at_end=held_out > 0,
        metric_for_best_model=HELD_OUT_LOSS if held_out else None,
        greater_is_better=False,
    )
    return GenerativeTrainer(model, arguments, store, loss, settings, held_out, evaluator=evaluator)


def _new_loss(
    model: SentenceTransformer, tokenizer: Tokenizer, settings: GenerativeSettings
) -> TranslationElbo:
    """Make the objective of a run, with new language encoders and decoders."""
    objective = OBJECTIVES[settings.objective]
    languages = {}
    if objective.languages:
        languages = {side: _new_encoder(tokenizer, settings) for side in SIDES}
    shape = DecoderShape(
        transformer=_transformer_shape(settings, settings.decoder_layers),
        latent_dim=settings.latent_dim,
        generators=objective.generators,
        translators=objective.translators,
        at_attention="attention" in settings.injection,
        at_logits="logit" in settings.injection,
    )
    special = special_ids(tokenizer)
    generator = BilingualGenerator(model, languages, len(tokenizer), special=special, shape=shape)
    return TranslationElbo(generator, settings)


def _new_encoder(tokenizer: Tokenizer, settings: GenerativeSettings) -> SentenceTransformer:
    shape = _transformer_shape(settings, settings.encoder_layers)
    device = None if settings.device == "auto" else settings.device
    return transformer_pipeline(tokenizer, shape, settings.latent_dim, device)


def _transformer_shape(settings: GenerativeSettings, layers: int) -> TransformerShape:
    return TransformerShape(
        dim=settings.dim,
        layers=layers,
        heads=settings.heads,
        ffn_dim=settings.ffn_dim,
        dropout=settings.dropout,
        max_length=settings.max_length,
    )
