"""What the steps share: datatrove's base class and logger, Parquet, and the texts of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from st_paragram.core.extras import require
from st_paragram.errors import TextError

if TYPE_CHECKING:
    from datatrove.data import Document

PURPOSE = "a pipeline of datatrove"
STEP: Any = require("datatrove.pipeline.base", "distributed", PURPOSE).PipelineStep
LOGGER: Any = require("datatrove.utils.logging", "distributed", PURPOSE).logger
PARQUET: Any = require("pyarrow.parquet", "distributed", PURPOSE)


def text_of(document: Document, key: str | None) -> str:
    """Return the text of a document, or the text with a name in its metadata."""
    text = document.metadata.get(key) if key else document.text
    if not isinstance(text, str):
        keys = ", ".join(document.metadata) or "nothing"
        raise TextError(
            f"document {document.id}: no text {key!r} in its metadata (it has {keys}); check"
            " the key"
        )
    return text
