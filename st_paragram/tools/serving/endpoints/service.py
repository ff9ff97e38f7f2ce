"""What all endpoints share: the model, the limits and the way to an embedding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from numpy.typing import NDArray

from st_paragram.tools.serving.batching import Batcher, Kind, Rows
from st_paragram.tools.serving.messages import Request
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import ServingSettings

_LARGE = 1 << 16  # numbers of an answer, and characters of its texts, beyond which a thread writes it


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


async def written(work: Callable[[], bytes], numbers: NDArray[Any], texts: Sequence[str] = ()) -> bytes:
    """The content of an answer; what takes long is written in a thread, so that others are answered meanwhile.

    Args:
        work: writes it.
        numbers: what it writes.
        texts: what it reads.
    """
    is_large = numbers.size + sum(map(len, texts)) > _LARGE
    return await asyncio.to_thread(work) if is_large else work()


def row_list(rows: Rows) -> list[bytes]:
    """Each row as a JSON list of numbers, in as few digits as float32 needs.

    One row at a time: other threads can run in between.
    """
    return [orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) for row in rows]
