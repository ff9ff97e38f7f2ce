"""Averaging models in model directories, as `ParagramEncoder`s; `core.encoding.model_files` says what the files are."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.directory import STOCK_CONFIG_FILE
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import DAMAGED, ModelDirectoryError, one_line
from st_paragram.learning.models import averaging
from st_paragram.learning.models.averaging import check, read_weights, write
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder

__all__ = ["check", "holds", "read", "read_weights", "write"]

logger = logging.getLogger(__name__)


def holds(model: SentenceTransformer) -> bool:
    """Whether a pipeline is an averaging model."""
    return averaging.averaging_embedding(model) is not None


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> ParagramEncoder:
    """Read what `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: a file is missing or damaged.
    """
    embedding, stored = averaging.read(folder, values, truncate_dim)
    try:
        model = pipeline(embedding, device, stored.unit_vectors, **stored.settings)
    except DAMAGED as error:
        path = folder / STOCK_CONFIG_FILE
        raise ModelDirectoryError(f"{path}: {one_line(error)}; save the model again") from error
    if (card := folder / "README.md").is_file():
        # As sentence-transformers does it: saving the model again keeps its card.
        model._model_card_text = card.read_text(encoding="utf-8", errors="replace")  # type: ignore[assignment]
    model.eval()
    if isinstance(tokenizer := embedding.tokenizer, BilingualTokenizer):
        both = " and ".join(tokenizer.languages)
        logger.warning(f"{folder}: a vocabulary for each of {both}; texts are read as {tokenizer.language} by default")
    return model
