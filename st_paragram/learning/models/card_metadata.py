"""The metadata on top of a model card, which the Hugging Face hub searches and shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData

from st_paragram.core.encoding.training_record import TrainingRecord
from st_paragram.learning.models.card_scores import development_entries

_LANGUAGE = re.compile("[a-z]{2,3}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def card_metadata(record: TrainingRecord, stock: bool, licence: str | None = None) -> ModelCardData:
    """What the hub should know of a trained model.

    Args:
        record: of the training run.
        stock: sentence-transformers alone can open the model.
        licence: an identifier of the hub, such as "cc-by-4.0"; none is stated without one.
    """
    entries = development_entries(record)
    library = "sentence-transformers" if stock else "st_paragram"
    return ModelCardData(
        language=[code for code in metadata_languages(record) if _LANGUAGE.fullmatch(code)] or None,
        license=licence,
        library_name=library,
        pipeline_tag="sentence-similarity",
        base_model=base_model(record.settings),
        tags=list(dict.fromkeys([library, "sentence-similarity", "st_paragram", network_tag(record.settings)])),
        model_name=record.name if entries else None,
        eval_results=entries or None,
    )


def metadata_languages(record: TrainingRecord) -> list[str]:
    """Codes of the languages of both sides, without scripts and countries ("zh" for "zh_cn")."""
    codes = (code.partition("_")[0] for side in record.languages for code in side.split("-"))
    return list(dict.fromkeys(codes))


def network_tag(settings: Mapping[str, Any]) -> str:
    """What kind of network it is."""
    kind: str = settings.get("architecture", "transformer" if "objective" in settings else "static-embeddings")
    return kind


def base_model(settings: Mapping[str, Any]) -> str | None:
    """The model of the hub that the training began with, if there was one; the hub knows no others."""
    name = str(settings.get("init") or "").partition("@")[0]
    return name if _HUB_ID.fullmatch(name) and not Path(name).exists() else None
