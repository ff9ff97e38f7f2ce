"""What a request may ask of a model, before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.tools.serving.errors import Refused
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import ServingSettings


def check_texts(texts: Sequence[str], settings: ServingSettings, field: str) -> None:
    """Refuse no text, too many, empty and too long ones.

    Raises:
        Refused: the message says which, by its number from 0, and never what it says.
    """
    if not texts:
        raise Refused(400, f"{field} is empty; give at least one text", field)
    if len(texts) > settings.max_texts:
        raise Refused(400, f"{field} has {len(texts)} texts; at most {settings.max_texts} are allowed", field)
    for number, text in enumerate(texts):
        if not text.strip():
            raise Refused(400, f"text {number} of {field} is empty", field)
        if len(text) > settings.max_characters:
            seen = f"text {number} of {field} has {len(text)} characters"
            raise Refused(400, f"{seen}; at most {settings.max_characters} are allowed", field)


def check_model(asked: str | None, served: ServedModel) -> None:
    """Refuse another model than the one that is served.

    Raises:
        Refused: with status 404.
    """
    if asked is not None and asked != served.name:
        raise Refused(404, f"this server has one model, {served.name}", "model")


def check_dimensions(asked: int | None, served: ServedModel) -> None:
    """Refuse more components than there are.

    Raises:
        Refused: the model has fewer.
    """
    if asked is not None and asked > served.dimension:
        raise Refused(400, f"dimensions is {asked}; {served.name} has {served.dimension} components", "dimensions")
