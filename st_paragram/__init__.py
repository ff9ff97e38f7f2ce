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
    from st_paragram.conversion.exports import ExportSettings, export_model
    from st_paragram.conversion.original_import import import_checkpoint
    from st_paragram.conversion.original_settings import ImportSettings
    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.pair_store import PairStore, PairStoreWriter
    from st_paragram.core.sample import sample_pairs
    from st_paragram.core.text.parallel import parse_source
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
    from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
    from st_paragram.families.muse.dual_encoder_ranking import DualEncoderRankingLoss
    from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
    from st_paragram.families.muse.sentence_transformers_towers import EncoderWithTowers
    from st_paragram.families.muse.side_by_side import SideBySide
    from st_paragram.families.muse.use_encoder import UseEncoder
    from st_paragram.hub.push import push
    from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
    from st_paragram.learning.models.directory import load, save
    from st_paragram.learning.models.encoder import pipeline
    from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder
    from st_paragram.learning.modules.mean_pool import MeanPool
    from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
    from st_paragram.learning.modules.token_embedding import TokenEmbedding
    from st_paragram.learning.training.mega_batch.arguments import MegaBatchTrainingArguments
    from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer
    from st_paragram.learning.training.run import TrainingRun, run_training
    from st_paragram.learning.training.settings import TrainingSettings
    from st_paragram.learning.training.store_trainer import StoreTrainer
    from st_paragram.tools.bitext_mining.miner import mine
    from st_paragram.tools.bitext_mining.settings import MiningSettings
    from st_paragram.tools.cleaning.config import default_cleaning
    from st_paragram.tools.demo_page.comparison import compare
    from st_paragram.tools.embed_files import CollectionSettings, embed_collection, embed_file, read_embeddings
    from st_paragram.tools.evaluation.mteb.model import model_meta
    from st_paragram.tools.preparation.prepare import prepare
    from st_paragram.tools.preparation.settings import PrepareSettings
    from st_paragram.tools.score_files import score_file
    from st_paragram.tools.search.search_index import SearchIndex
    from st_paragram.tools.vectorizer import ParagramVectorizer

__all__ = [
    "CollectionSettings",
    "DualEncoder",
    "DualEncoderRankingLoss",
    "Encoder",
    "EncoderWithTowers",
    "ExportSettings",
    "GenerativeEncoder",
    "ImportSettings",
    "MarginHardNegativeLoss",
    "MeanPool",
    "MegaBatchTrainer",
    "MegaBatchTrainingArguments",
    "MiningSettings",
    "PairStore",
    "PairStoreWriter",
    "ParagramEncoder",
    "ParagramVectorizer",
    "PrepareSettings",
    "SearchIndex",
    "SentencePieceEmbedding",
    "SentencePieceTokenizer",
    "SideBySide",
    "StoreTrainer",
    "TokenEmbedding",
    "TrainingRun",
    "TrainingSettings",
    "UseEncoder",
    "__version__",
    "compare",
    "default_cleaning",
    "embed_collection",
    "embed_file",
    "export_model",
    "import_checkpoint",
    "load",
    "mine",
    "model_meta",
    "parse_source",
    "pipeline",
    "prepare",
    "push",
    "read_embeddings",
    "run_training",
    "sample_pairs",
    "save",
    "score_file",
]

_MODULES = {
    "CollectionSettings": "tools.embed_files",
    "DualEncoder": "families.muse.sentence_transformers_encoder",
    "DualEncoderRankingLoss": "families.muse.dual_encoder_ranking",
    "Encoder": "core.encoding.encoder",
    "EncoderWithTowers": "families.muse.sentence_transformers_towers",
    "ExportSettings": "conversion.exports",
    "GenerativeEncoder": "families.bgt.sentence_transformers_encoder",
    "ImportSettings": "conversion.original_settings",
    "MarginHardNegativeLoss": "learning.losses.margin_hard_negative",
    "MeanPool": "learning.modules.mean_pool",
    "MegaBatchTrainer": "learning.training.mega_batch.trainer",
    "MegaBatchTrainingArguments": "learning.training.mega_batch.arguments",
    "MiningSettings": "tools.bitext_mining.settings",
    "PairStore": "core.pair_store",
    "PairStoreWriter": "core.pair_store",
    "ParagramEncoder": "learning.models.sentence_transformers_encoder",
    "ParagramVectorizer": "tools.vectorizer",
    "PrepareSettings": "tools.preparation.settings",
    "SearchIndex": "tools.search.search_index",
    "SentencePieceEmbedding": "learning.modules.sentencepiece_embedding",
    "SentencePieceTokenizer": "core.tokenizers.sentencepiece",
    "SideBySide": "families.muse.side_by_side",
    "StoreTrainer": "learning.training.store_trainer",
    "TokenEmbedding": "learning.modules.token_embedding",
    "TrainingRun": "learning.training.run",
    "TrainingSettings": "learning.training.settings",
    "UseEncoder": "families.muse.use_encoder",
    "compare": "tools.demo_page.comparison",
    "default_cleaning": "tools.cleaning.config",
    "embed_collection": "tools.embed_files",
    "embed_file": "tools.embed_files",
    "export_model": "conversion.exports",
    "import_checkpoint": "conversion.original_import",
    "load": "learning.models.directory",
    "mine": "tools.bitext_mining.miner",
    "model_meta": "tools.evaluation.mteb.model",
    "parse_source": "core.text.parallel",
    "pipeline": "learning.models.encoder",
    "prepare": "tools.preparation.prepare",
    "push": "hub.push",
    "read_embeddings": "tools.embed_files",
    "run_training": "learning.training.run",
    "sample_pairs": "core.sample",
    "save": "learning.models.directory",
    "score_file": "tools.score_files",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any value there
    """Import a public name from where it is defined (PEP 562)."""
    if name == "__version__":
        from st_paragram.core.version import installed_version

        return installed_version()
    if name not in _MODULES:
        raise AttributeError(f"module 'st_paragram' has no attribute {name!r}; public names are {', '.join(__all__)}")
    try:
        return getattr(importlib.import_module(f"st_paragram.{_MODULES[name]}"), name)
    except ImportError as error:
        from st_paragram.core.extras import missing_from_light
        from st_paragram.errors import MissingExtraError

        if reason := missing_from_light(error):
            raise MissingExtraError(f"st_paragram.{name}: {reason}") from error
        raise


def __dir__() -> list[str]:
    """Public names."""
    return __all__
