"""Training of SP and P-SP: the margin loss, with negatives mined in mega-batches (ACL 2019, EMNLP
2022).
"""

from __future__ import annotations

from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import nn

from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.psp.bilstm import BiLSTM
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.families.psp.mega_batch_trainer import (
    MegaBatchTrainer,
    MegaBatchTrainingArguments,
)
from st_paragram.families.psp.settings import RECURRENT, TOKENS_OF, TrainingSettings
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.learning.training.initial_rows import initial_rows
from st_paragram.learning.training.trainer import arguments_of


def new_model(store: PairStore, settings: TrainingSettings) -> SentenceTransformer:
    """Make the initial model over the store's tokenizer; refuse tokens that do not fit the encoder."""
    tokenizer, encoder = store.tokenizer(), settings.encoder
    kind = getattr(tokenizer, "inner_kind", tokenizer.kind)
    if kind != TOKENS_OF[encoder]:
        fitting = " or ".join(name for name, tokens in TOKENS_OF.items() if tokens == kind)
        raise SettingsError(
            f"{store.path}: a store of {kind} ids, but the encoder {encoder} reads"
            f" {TOKENS_OF[encoder]} ids; choose the encoder {fitting}, or prepare the text with"
            f" tokens {TOKENS_OF[encoder]}"
        )
    if encoder in RECURRENT and isinstance(tokenizer, BilingualTokenizer):
        raise SettingsError(
            f"{store.path}: separate vocabularies per language; prepare the text with a joint"
            f" vocabulary for {encoder}"
        )
    device = None if settings.device == "auto" else settings.device
    weights = initial_rows(tokenizer, settings.init, settings.dim) if settings.init else None
    embedding = token_embedding(
        tokenizer, None if settings.init else settings.dim, weights, settings.dropout
    )
    if encoder not in RECURRENT:
        return pipeline(embedding, device)
    lstm = BiLSTM(embedding.embedding_dimension, settings.hidden_dim)
    modules: list[nn.Module] = [embedding, lstm, MeanPool(lstm.get_embedding_dimension())]
    return SentenceTransformer(modules=modules, device=device, similarity_fn_name="cosine")


def trainer(
    model: SentenceTransformer,
    store: PairStore,
    settings: TrainingSettings,
    folder: Path,
    evaluator: BaseEvaluator | None = None,
    _: object = None,
) -> MegaBatchTrainer:
    """Make the trainer of a run with checkpoints in `folder`, which evaluates regularly if there is
    an evaluator.
    """
    loss = MarginHardNegativeLoss(model, settings.margin)
    return MegaBatchTrainer(
        model, arguments(settings, folder, evaluator is not None), store, loss, evaluator=evaluator
    )


def arguments(
    settings: TrainingSettings, folder: Path, evaluate: bool = True
) -> MegaBatchTrainingArguments:
    """Return the trainer's arguments for these settings; with `evaluate`, it evaluates regularly."""
    return arguments_of(
        MegaBatchTrainingArguments,
        settings,
        folder,
        settings.warmup,
        evaluate,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        negatives_from_both_sides=settings.negatives == "both",
    )
