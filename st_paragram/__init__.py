"""Efficient paraphrastic sentence embeddings as a sentence-transformers plugin.

The names below are imported when they are first used, so that `import st_paragram` costs next to
nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

# Modules of the package and the public names that each defines; `__init__.pyi` has the same for
# type checkers.
_NAMES = {
    "conversion.original_import": ["ImportSettings", "import_checkpoint"],
    "core.encoding.encoder": ["Encoder"],
    "core.pair_store": ["PairStore", "PairStoreWriter"],
    "core.sample": ["sample_pairs"],
    "core.text.parallel": ["parse_source"],
    "core.tokenizers.sentencepiece": ["SentencePieceTokenizer"],
    "families.bgt.sentence_transformers_encoder": ["GenerativeEncoder"],
    "families.loading": ["load"],
    "families.muse.losses": ["DualEncoderRankingLoss"],
    "families.muse.sentence_transformers_encoder": ["DualEncoder", "EncoderWithTowers"],
    "families.muse.settings": ["MuseData"],
    "families.muse.side_by_side": ["SideBySide"],
    "families.muse.use_encoder": ["UseEncoder"],
    "hub": ["push"],
    "families.psp.margin_hard_negative": ["MarginHardNegativeLoss"],
    "learning.models.load_save": ["save"],
    "learning.models.sentence_transformers_encoder": ["ParagramEncoder", "pipeline"],
    "learning.modules.mean_pool": ["MeanPool"],
    "learning.modules.token_embedding": ["SentencePieceEmbedding", "TokenEmbedding"],
    "families.psp.mega_batch_trainer": ["MegaBatchTrainer", "MegaBatchTrainingArguments"],
    "runs.development": ["Development", "development_pairs", "hold_out"],
    "runs.run": ["TrainingRun", "run_training"],
    "families.psp.settings": ["TrainingSettings"],
    "tools.alignment.align": ["align"],
    "tools.alignment.settings": ["AlignmentSettings"],
    "tools.bitext_mining.miner": ["mine"],
    "tools.bitext_mining.settings": ["MiningSettings"],
    "tools.cleaning.config": ["default_cleaning"],
    "tools.comparison": ["compare"],
    "tools.distributed.clean": ["CleanPairs"],
    "tools.distributed.embed": ["EmbedTexts"],
    "tools.embed_files": ["embed_files", "read_embeddings"],
    "tools.evaluation.mteb_model": ["model_meta"],
    "tools.preparation.prepare": ["prepare"],
    "tools.preparation.settings": ["PrepareSettings"],
    "tools.score_files": ["score_file"],
    "tools.search.index": ["SearchIndex"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
_PUBLIC = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Import a public name from where it is defined (PEP 562)."""
    if name == "__version__":
        from st_paragram.core.extras import installed_version

        return installed_version()
    if name == "__all__":
        return _available()
    if name not in _MODULES:
        raise AttributeError(
            f"module 'st_paragram' has no attribute {name!r}; public names are {', '.join(_PUBLIC)}"
        )
    from st_paragram.errors import MissingExtraError, MissingNameError

    try:
        module = importlib.import_module(f"st_paragram.{_MODULES[name]}")
        return getattr(module, name)
    except MissingExtraError as error:
        raise MissingNameError(f"st_paragram.{name}: {error}") from error
    except ImportError as error:
        from st_paragram.core.extras import missing_from_light

        needs_torch = not _MODULES[name].startswith(("core.", "tools."))
        advice = missing_from_light(error, needs_torch)
        if advice is None:
            raise
        raise MissingNameError(f"st_paragram.{name}: {advice}") from error


def _available() -> list[str]:
    """Return the public names that are installed, for `from st_paragram import *`."""
    module = sys.modules[__name__]
    return [name for name in _PUBLIC if hasattr(module, name)]


def __dir__() -> list[str]:
    """Public names."""
    return _PUBLIC


class _MissingNames:
    """Give `from st_paragram import NAME` the error of a missing extra, as the last module finder.

    Otherwise Python replaces an AttributeError by "cannot import name".
    """

    @staticmethod
    def find_spec(module: str, path: object = None, target: object = None) -> None:
        package, _, name = module.rpartition(".")
        if package == __name__ and name in _MODULES:
            __getattr__(name)


sys.meta_path.append(_MissingNames)  # type: ignore[arg-type]
