"""Efficient paraphrastic sentence embeddings as a sentence-transformers plugin.

The names below are imported when they are first used, so that `import st_paragram` costs next to nothing.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

# Threads that wait for work should soon sleep: with GNU OpenMP's default a second busy process on the machine makes the
# many small steps of training ten times slower. Must be set before torch is imported; your own setting wins.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

if TYPE_CHECKING:
    from st_paragram.bitext_mining.miner import mine
    from st_paragram.bitext_mining.settings import MiningSettings
    from st_paragram.core.encoder import Encoder
    from st_paragram.data.pair_store import PairStore, PairStoreWriter
    from st_paragram.embed_files import embed_collection, embed_file, read_embeddings
    from st_paragram.losses.margin_hard_negative import MarginHardNegativeLoss
    from st_paragram.models.directory import load, save
    from st_paragram.models.encoder import pipeline
    from st_paragram.modules.mean_pool import MeanPool
    from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding
    from st_paragram.modules.token_embedding import TokenEmbedding
    from st_paragram.preparation.prepare import prepare
    from st_paragram.preparation.settings import PrepareSettings
    from st_paragram.score_files import score_file
    from st_paragram.search.search_index import SearchIndex
    from st_paragram.tokenizers.sentencepiece import SentencePieceTokenizer
    from st_paragram.training.mega_batch.arguments import MegaBatchTrainingArguments
    from st_paragram.training.mega_batch.trainer import MegaBatchTrainer
    from st_paragram.training.settings import TrainingSettings
    from st_paragram.training.store_trainer import StoreTrainer

__all__ = [
    "Encoder",
    "MarginHardNegativeLoss",
    "MeanPool",
    "MegaBatchTrainer",
    "MegaBatchTrainingArguments",
    "MiningSettings",
    "PairStore",
    "PairStoreWriter",
    "PrepareSettings",
    "SearchIndex",
    "SentencePieceEmbedding",
    "SentencePieceTokenizer",
    "StoreTrainer",
    "TokenEmbedding",
    "TrainingSettings",
    "__version__",
    "embed_collection",
    "embed_file",
    "load",
    "mine",
    "pipeline",
    "prepare",
    "read_embeddings",
    "save",
    "score_file",
]

_MODULES = {
    "Encoder": "core.encoder",
    "MarginHardNegativeLoss": "losses.margin_hard_negative",
    "MeanPool": "modules.mean_pool",
    "MegaBatchTrainer": "training.mega_batch.trainer",
    "MegaBatchTrainingArguments": "training.mega_batch.arguments",
    "MiningSettings": "bitext_mining.settings",
    "PairStore": "data.pair_store",
    "PairStoreWriter": "data.pair_store",
    "PrepareSettings": "preparation.settings",
    "SearchIndex": "search.search_index",
    "SentencePieceEmbedding": "modules.sentencepiece_embedding",
    "SentencePieceTokenizer": "tokenizers.sentencepiece",
    "StoreTrainer": "training.store_trainer",
    "TokenEmbedding": "modules.token_embedding",
    "TrainingSettings": "training.settings",
    "embed_collection": "embed_files",
    "embed_file": "embed_files",
    "load": "models.directory",
    "mine": "bitext_mining.miner",
    "pipeline": "models.encoder",
    "prepare": "preparation.prepare",
    "read_embeddings": "embed_files",
    "save": "models.directory",
    "score_file": "score_files",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever stands there
    """Import a public name from where it is defined (PEP 562)."""
    if name == "__version__":
        from st_paragram.version import installed_version

        return installed_version()
    if name not in _MODULES:
        raise AttributeError(f"module 'st_paragram' has no attribute {name!r}; public names are {', '.join(__all__)}")
    try:
        return getattr(importlib.import_module(f"st_paragram.{_MODULES[name]}"), name)
    except ImportError as error:
        from st_paragram.errors import MissingExtraError
        from st_paragram.extras import missing_from_light

        if reason := missing_from_light(error):
            raise MissingExtraError(f"st_paragram.{name}: {reason}") from error
        raise


def __dir__() -> list[str]:
    """Public names."""
    return __all__
