"""Training of SP and P-SP: the margin loss, with negatives mined in mega-batches."""

from __future__ import annotations

from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator

from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.psp.encoders import ENCODERS
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.families.psp.mega_batch_trainer import (
    MegaBatchTrainer,
    MegaBatchTrainingArguments,
)
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.learning.training.initial_rows import initial_rows
from st_paragram.learning.training.trainer import arguments_of


def new_model(store: PairStore, settings: TrainingSettings) -> SentenceTransformer:
    """Make the initial model over the store's tokenizer, whose tokens must fit the encoder."""
    tokenizer = store.tokenizer()
    encoder = ENCODERS[settings.encoder]
    kind = getattr(tokenizer, "inner_kind", tokenizer.kind)
    if kind != settings.tokens:
        encoders = [name for name, other in ENCODERS.items() if other.tokens == kind]
        raise SettingsError(
            f"{store.path}: a store of {kind} ids, but the encoder {settings.encoder} reads"
            f" {settings.tokens} ids; choose the encoder {' or '.join(encoders)}, or prepare the"
            f" text with tokens {settings.tokens}"
        )
    if encoder.modules and isinstance(tokenizer, BilingualTokenizer):
        raise SettingsError(
            f"{store.path}: separate vocabularies per language; prepare the text with a joint"
            f" vocabulary for {settings.encoder}"
        )
    device = None if settings.device == "auto" else settings.device
    if settings.init:
        weights = initial_rows(tokenizer, settings.init, settings.dim)
        embedding = token_embedding(tokenizer, weights=weights, dropout=settings.dropout)
    else:
        embedding = token_embedding(tokenizer, settings.dim, dropout=settings.dropout)
    if encoder.modules is None:
        return pipeline(embedding, device)
    modules = [embedding, *encoder.modules(embedding.embedding_dimension, settings.hidden_dim)]
    return SentenceTransformer(modules=modules, device=device, similarity_fn_name="cosine")


def trainer(
    model: SentenceTransformer,
    store: PairStore,
    settings: TrainingSettings,
    folder: Path,
    evaluator: BaseEvaluator | None = None,
    data: object = None,
) -> MegaBatchTrainer:
    """Make the trainer of a run with checkpoints in `folder`; an evaluator is applied regularly."""
    arguments = arguments_of(
        MegaBatchTrainingArguments,
        settings,
        folder,
        warmup=settings.warmup,
        evaluate=evaluator is not None,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
    )
    loss = MarginHardNegativeLoss(model, settings.margin)
    return MegaBatchTrainer(model, arguments, store, loss=loss, evaluator=evaluator)
