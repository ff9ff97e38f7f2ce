"""What all endpoints share: the model, the limits, the way to an embedding and the way to an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson
from pydantic import StrictBool

from st_paragram.tools.serving.batching import Batcher, Kind, Rows
from st_paragram.tools.serving.messages import Answer, Refused, Request
from st_paragram.tools.serving.reading import RequestSchema
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import ServingSettings

_LARGE = 1 << 16  # numbers and characters of an answer beyond which a thread writes it


class Truncating(RequestSchema):
    """A request that may ask for long texts to be cut, as text-embeddings-inference defines it."""

    truncate: StrictBool | None = False
    truncation_direction: Literal["Left", "Right", "left", "right"] = "Right"

    def cut(self, texts: Sequence[str], most: int) -> list[str]:
        """The first `most` characters of each text, or the last ones, if the request allows it; else the texts."""
        if not self.truncate:
            return list(texts)
        part = slice(-most, None) if self.truncation_direction.lower() == "left" else slice(most)
        return [text[part] for text in texts]


@dataclass(frozen=True)
class Service:
    """The model, its limits, and the batches that requests join."""

    served: ServedModel
    settings: ServingSettings
    batcher: Batcher

    async def rows(self, request: Request, texts: Sequence[str], kind: Kind = Kind.SENTENCE) -> Rows:
        """Embeddings of a request's texts, float32 (n, D), of any length.

        Raises:
            ClientGone: the client left before.
            TooBusy: too many texts wait.
        """
        rows = self.batcher.at_once(texts, kind)
        return await request.unless_gone(self.batcher.encoded(texts, kind)) if rows is None else rows

    def check_texts(self, texts: Sequence[str], field: str) -> None:
        """Refuse no text, too many, empty and too long ones.

        Raises:
            Refused: the message says which, by its number from 0, and never what it says.
        """
        if not texts:
            raise Refused(400, f"{field} is empty; give at least one text", field)
        self.check_number(len(texts), field)
        for number, text in enumerate(texts):
            if not text.strip():
                raise Refused(400, f"text {number} of {field} is empty", field)
            if len(text) > self.settings.max_characters:
                seen = f"text {number} of {field} has {len(text)} characters"
                raise Refused(400, f"{seen}; at most {self.settings.max_characters} are allowed", field)

    def check_number(self, texts: int, field: str) -> None:
        """Refuse too many texts.

        Raises:
            Refused: there are more than `max_texts`.
        """
        if texts > self.settings.max_texts:
            raise Refused(400, f"{field} has {texts} texts; at most {self.settings.max_texts} are allowed", field)

    def check_model(self, asked: str | None) -> None:
        """Refuse another model than the one that is served.

        Raises:
            Refused: with status 404.
        """
        if asked is not None and asked != self.served.name:
            raise Refused(404, f"this server has one model, {self.served.name}", "model")

    def check_dimensions(self, asked: int | None) -> None:
        """Refuse more components than there are.

        Raises:
            Refused: the model has fewer.
        """
        if asked is not None and asked > self.served.dimension:
            has = f"{self.served.name} has {self.served.dimension} components"
            raise Refused(400, f"dimensions is {asked}; {has}", "dimensions")


async def written(work: Callable[[], bytes], numbers: int, texts: Sequence[str] = ()) -> Answer:
    """An answer; what takes long is written in a thread, so that others are answered meanwhile.

    Args:
        work: writes the content.
        numbers: how many it writes.
        texts: what it reads.
    """
    is_large = numbers + sum(map(len, texts)) > _LARGE
    return Answer(await asyncio.to_thread(work) if is_large else work())


def row_list(rows: Rows) -> list[bytes]:
    """Each row as a JSON list of numbers, in as few digits as float32 needs.

    One row at a time: other threads can run in between.
    """
    return [orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) for row in rows]
