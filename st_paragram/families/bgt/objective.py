"""The objectives of the bilingual generative transformer, its ablations and its baselines (EMNLP 2020)."""

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
from st_paragram.families.bgt.settings import OBJECTIVES, SIDES
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.families.bgt.trainer import HELD_OUT_LOSS, GenerativeTrainer, GenerativeTrainingArguments
from st_paragram.families.bgt.translation_elbo import TranslationElbo
from st_paragram.learning.modules.transformer_encoder import TransformerShape, special_ids, transformer_pipeline
from st_paragram.learning.training.arguments import arguments_of
from st_paragram.learning.training.initial_rows import initial_rows

logger = logging.getLogger(__name__)

#: Whether what is logged of a run is kept with the model: what the variables hold over time is reported.
HAS_HISTORY = True

_LOGGED = 50  # updates between two lines


def new_model(store: PairStore, settings: GenerativeSettings) -> SentenceTransformer:
    """The semantic encoder over the store's vocabulary that training begins with.

    Raises:
        SettingsError: The store's tokenizer is not one of sentencepiece, or the model to begin with does not fit.
        ModelDirectoryError: There is no such model, or no averaging model.
    """
    tokenizer = _tokenizer(store)
    model = _pipeline(tokenizer, settings)
    if settings.init:
        encoder: Any = model[0].model
        table = encoder.embed_tokens.weight
        rows = initial_rows(tokenizer, settings.init, settings.dim)
        with torch.no_grad():  # Marian multiplies rows by this root, and a model's own begin with N(0, 1)
            table.copy_(rows * settings.dim**-0.5)
            table[special_ids(tokenizer).pad].zero_()
    return model


def _tokenizer(store: PairStore) -> Tokenizer:
    first, second = store.tokenizers
    if not first.shares_rows(second):
        raise SettingsError(
            f"{store.path}: separate vocabularies for the two sides; prepare the text with a joint vocabulary"
        )
    languages = store.languages
    if languages[0] == languages[1]:
        raise SettingsError(f"{store.path}: pairs of {languages[0]} alone; a generative model needs two languages")
    try:
        special_ids(first)
    except SettingsError as error:
        raise SettingsError(f"{store.path}: {error}") from error
    return first


def _pipeline(tokenizer: Tokenizer, settings: GenerativeSettings) -> SentenceTransformer:
    device = None if settings.device == "auto" else settings.device
    return transformer_pipeline(tokenizer, _shape(settings, settings.encoder_layers), settings.latent_dim, device)


def _shape(settings: GenerativeSettings, layers: int) -> TransformerShape:
    sizes = (settings.heads, settings.ffn_dim, settings.dropout, settings.max_length)
    return TransformerShape(settings.dim, layers, *sizes)


def trainer(
    model: SentenceTransformer,
    store: PairStore,
    settings: GenerativeSettings,
    folder: Path,
    evaluator: BaseEvaluator | None = None,
) -> GenerativeTrainer:
    """The trainer of a run.

    Args:
        model: the semantic encoder, as `new_model` makes it.
        store: the pairs.
        settings: of the run.
        folder: for checkpoints.
        evaluator: looks at the model now and then; without one nothing is evaluated.

    Raises:
        SettingsError: settings and store contradict each other.
    """
    tokenizer, parts = _tokenizer(store), OBJECTIVES[settings.objective]
    shape = DecoderShape(
        _shape(settings, settings.decoder_layers),
        settings.latent_dim,
        parts.generators,
        parts.translators,
        at_attention="attention" in settings.injection,
        at_logits="logit" in settings.injection,
    )
    languages = {side: _pipeline(tokenizer, settings) for side in SIDES if parts.languages}
    generator = BilingualGenerator(model, languages, len(tokenizer), special_ids(tokenizer), shape)
    loss = TranslationElbo(
        generator,
        settings.objective,
        settings.latent,
        settings.label_smoothing,
        settings.translation_weight,
        settings.candidates,
    )
    parameters = sum(parameter.numel() for parameter in loss.parameters() if parameter.requires_grad)
    logger.info(f"{settings.objective}: {parameters:,} parameters")
    return GenerativeTrainer(
        model, arguments(settings, folder, evaluator is not None), store, loss, evaluator=evaluator
    )


def arguments(settings: GenerativeSettings, folder: Path, evaluate: bool = True) -> GenerativeTrainingArguments:
    """The trainer's arguments for these settings; `evaluate` now and then, or never."""
    held_out = settings.held_out if evaluate else 0
    best: dict[str, Any] = {}
    if held_out:
        best = {
            "save_strategy": "steps" if settings.evaluate_steps else "epoch",
            "save_steps": settings.evaluate_steps or 500,
            "load_best_model_at_end": True,
            "metric_for_best_model": HELD_OUT_LOSS,
            "greater_is_better": False,
        }
    return arguments_of(
        GenerativeTrainingArguments,
        settings,
        folder,
        settings.warmup_updates,
        evaluate,
        num_train_epochs=settings.epochs,
        max_grad_norm=settings.clip_norm,
        logging_steps=_LOGGED,
        logging_first_step=True,
        held_out=held_out,
        **best,
    )


def trained(trainer: GenerativeTrainer) -> SentenceTransformer:
    """The model to save: the pipeline with the languages' encoders and decoders."""
    store, generator = trainer.store, trainer.loss.generator
    return GenerativeEncoder.of(trainer.model, store.languages, store.tokenizer(), generator)
