"""Texts cut to the limit, where a request asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.tools.serving.schemas import EmbedRequest, RerankTextsRequest
from st_paragram.tools.serving.settings import ServingSettings


def truncated(texts: Sequence[str], asked: EmbedRequest | RerankTextsRequest, settings: ServingSettings) -> list[str]:
    """The first `max_characters` of each text, or the last ones, if the request allows it; else the texts."""
    if not asked.truncate:
        return list(texts)
    if asked.truncation_direction.lower() == "left":
        return [text[-settings.max_characters :] for text in texts]
    return [text[: settings.max_characters] for text in texts]
