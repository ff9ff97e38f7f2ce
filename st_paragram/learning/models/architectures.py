"""The architectures of model directories: what writes a pipeline into a folder, and what builds it from there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_paragram.core.damage import DAMAGED, one_line
from st_paragram.core.encoding.architectures import check_architecture
from st_paragram.core.encoding.configuration import (
    AVERAGING,
    DUAL_ENCODER,
    GENERATIVE,
    OWN_MODULES,
    RECURRENT,
    STOCK,
    STOCK_CONFIG_FILE,
)
from st_paragram.core.encoding.table import TableType
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import ModelDirectoryError
from st_paragram.families.bgt import directory as generative
from st_paragram.families.muse import directory as dual_encoder
from st_paragram.families.sp import directory as recurrent
from st_paragram.learning.models import averaging, own_modules, stock
from st_paragram.learning.models.encoder import ParagramEncoder, pipeline

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Architecture:
    """How pipelines of one kind are kept in a folder.

    Args:
        holds: whether a pipeline is of this kind.
        check: refuses a pipeline that `write` would refuse.
        write: pipeline, folder, type of the table and number of components (None: as they are).
        read: folder, entries of `st_paragram.json`, device, number of components; gives the pipeline.
        read_weights: fills a pipeline of the same kind and shape from a folder.
    """

    holds: Callable[[SentenceTransformer], bool]
    check: Callable[[SentenceTransformer], None]
    write: Callable[[SentenceTransformer, Path, TableType | str | None, int | None], None]
    read: Callable[[Path, dict[str, Any], str | None, int | None], SentenceTransformer]
    read_weights: Callable[[Path, SentenceTransformer], None]


def _read_averaging(
    folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None
) -> ParagramEncoder:
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


#: The first that holds a pipeline is its architecture.
ARCHITECTURES: dict[str, Architecture] = {
    AVERAGING: Architecture(
        holds=lambda model: averaging.averaging_embedding(model) is not None,
        check=averaging.check,
        write=averaging.write,
        read=_read_averaging,
        read_weights=averaging.read_weights,
    ),
    RECURRENT: Architecture(
        holds=lambda model: recurrent.recurrent_modules(model) is not None,
        check=recurrent.check,
        write=recurrent.write,
        read=recurrent.read,
        read_weights=recurrent.read_weights,
    ),
    GENERATIVE: Architecture(
        holds=lambda model: isinstance(model, generative.GenerativeEncoder),
        check=generative.check,
        write=generative.write,
        read=generative.read,
        read_weights=generative.read_weights,
    ),
    DUAL_ENCODER: Architecture(
        holds=lambda model: isinstance(model, dual_encoder.DualEncoder),
        check=dual_encoder.check,
        write=dual_encoder.write,
        read=dual_encoder.read,
        read_weights=dual_encoder.read_weights,
    ),
    STOCK: Architecture(
        holds=stock.holds,
        check=lambda model: None,
        write=stock.write,
        read=stock.read,
        read_weights=stock.read_weights,
    ),
    OWN_MODULES: Architecture(
        holds=lambda model: True,
        check=own_modules.check,
        write=own_modules.write,
        read=own_modules.read,
        read_weights=own_modules.read_weights,
    ),
}


def architecture_of(model: SentenceTransformer) -> Architecture:
    """The architecture that a pipeline is kept in."""
    return next(architecture for architecture in ARCHITECTURES.values() if architecture.holds(model))


def architecture_named(name: str, folder: Path) -> Architecture:
    """The architecture that a folder's `st_paragram.json` names.

    Raises:
        ModelDirectoryError: there is none of this name.
    """
    check_architecture(name, folder)
    return ARCHITECTURES[name]
