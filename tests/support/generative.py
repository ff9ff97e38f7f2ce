"""Small generative models for tests, and plain loops over them."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F

from st_paragram.families.bgt import training
from st_paragram.families.bgt.bilingual_generator import BilingualGenerator, DecoderShape
from st_paragram.families.bgt.settings import OBJECTIVES, SIDES, GenerativeSettings
from st_paragram.families.bgt.translation_elbo import TranslationElbo
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.transformer_encoder import (
    TransformerShape,
    special_ids,
    transformer_pipeline,
)

SHAPE = TransformerShape(dim=16, layers=1, heads=2, ffn_dim=24, max_length=40)
LATENT = 6


def new_generator(vocabulary, objective="bgt", shape=SHAPE, latent_dim=LATENT, **ways):
    """Encoders and decoders of an objective, untrained, in evaluation mode."""
    parts = OBJECTIVES[objective]

    def pipeline():
        return transformer_pipeline(vocabulary, shape, latent_dim, "cpu")

    decoders = DecoderShape(shape, latent_dim, parts.generators, parts.translators, **ways)
    languages = {side: pipeline() for side in SIDES if parts.languages}
    return BilingualGenerator(
        pipeline(), languages, len(vocabulary), special_ids(vocabulary), decoders
    ).eval()


_generators: dict[str, BilingualGenerator] = {}


def new_loss(vocabulary, objective="bgt", **options):
    """A loss over such a generator, in evaluation mode; the same weights each time."""
    if objective not in _generators:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            _generators[objective] = new_generator(vocabulary, objective)
    settings = GenerativeSettings(objective=objective, **options)
    return TranslationElbo(copy.deepcopy(_generators[objective]), settings).eval()


def batch_of(vocabulary, texts, max_length=SHAPE.max_length):
    """Texts as a batch of ids."""
    return SentenceBatch.of(*vocabulary.encode(list(texts)), special_ids(vocabulary), max_length)


def batches_of(vocabulary, pairs):
    """Pairs of texts as a batch of each side."""
    return {
        side: batch_of(vocabulary, texts)
        for side, texts in zip(SIDES, zip(*pairs, strict=True), strict=True)
    }


def tiny(**changes):
    """Settings of a run that takes milliseconds an update."""
    sizes = {
        "dim": 16,
        "ffn_dim": 24,
        "heads": 2,
        "latent_dim": LATENT,
        "encoder_layers": 1,
        "max_length": 40,
    }
    run = {
        "batch_tokens": 200,
        "min_pieces": 0,
        "warmup_updates": 4,
        "epochs": 1.0,
        "device": "cpu",
        "seed": 3,
    }
    return GenerativeSettings(**(sizes | run | changes))


def new_trainer(store, settings, folder, **arguments):
    """A trainer with `arguments`; by default it saves and evaluates nothing."""
    torch.manual_seed(settings.seed)
    model = training.new_model(store, settings)
    trainer = training.trainer(model, store, settings, folder)
    for name, value in ({"save_strategy": "no"} | arguments).items():
        setattr(trainer.args, name, value)
    return trainer


def log_probabilities(decoder, batch, latents):
    """The logarithm of each sentence's probability given its latent vector, (B,), by a plain
    softmax.
    """
    of_tokens = -F.cross_entropy(
        decoder.softmax(batch, latents).logits(), batch.targets, reduction="none"
    )
    return of_tokens.new_zeros(len(batch)).index_add(0, batch.sentences, of_tokens)


def greedy(decoder, latents, special, max_length):
    """Sentences of the most probable next ids: lists of ids, without their ends."""
    ids = torch.full((len(latents), 1), special.end)
    for _ in range(max_length):
        logits = decoder.next_logits(ids, latents)
        ids = torch.cat([ids, logits.argmax(1, keepdim=True)], 1)
    rows = [[*row, special.end] for row in ids[:, 1:].tolist()]
    return [row[: row.index(special.end)] for row in rows]
