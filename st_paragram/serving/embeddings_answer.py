"""The answer to a request for embeddings, written piece by piece."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

from st_paragram.serving.batching import Rows


def embeddings_answer(rows: Rows, name: str, tokens: int, as_base64: bool) -> bytes:
    """The JSON that OpenAI's clients read.

    Rows are written one at a time: other threads can run in between, which a single call for all would not let them.

    Args:
        rows: float32 (n, D), as they are sent.
        name: of the model.
        tokens: that the model has read.
        as_base64: rows as base64 of little-endian float32, not as lists of numbers.
    """
    end = {"model": name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    data = ",".join(_entries(rows, as_base64))
    return f'{{"object":"list","data":[{data}],{json.dumps(end)[1:]}'.encode()


def _entries(rows: Rows, as_base64: bool) -> Iterator[str]:
    for index, row in enumerate(rows):
        if as_base64:
            written = f'"{base64.b64encode(row.astype("<f4").tobytes()).decode("ascii")}"'
        else:
            written = json.dumps(row.tolist(), separators=(",", ":"), allow_nan=False)
        yield f'{{"object":"embedding","index":{index},"embedding":{written}}}'
