"""`POST /v1/embeddings`, as OpenAI's."""

from __future__ import annotations

import asyncio
from binascii import b2a_base64

import orjson

from st_paragram.tools.serving.batching import Rows
from st_paragram.tools.serving.checks import check_dimensions, check_model, check_texts
from st_paragram.tools.serving.endpoints.service import Service, row_list, written
from st_paragram.tools.serving.endpoints.token_input import texts_of_tokens
from st_paragram.tools.serving.messages import Answer, Request
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.schemas import EmbeddingsRequest
from st_paragram.tools.serving.served_model import unit_rows


def endpoint(service: Service) -> Endpoint:
    """The endpoint; its embeddings have length 1."""
    served = service.served

    async def embeddings(request: Request, asked: EmbeddingsRequest) -> Answer:
        check_model(asked.model, served)
        check_dimensions(asked.dimensions, served)
        texts = await _texts(asked.input)
        check_texts(texts, service.settings, "input")
        served.check(asked.input_type)
        rows = await service.rows(request, texts, asked.input_type)

        def content() -> bytes:
            units = unit_rows(rows, asked.dimensions)
            as_list = _base64_list(units) if asked.encoding_format == "base64" else row_list(units)
            return _content(as_list, served.name, served.tokens(texts))

        return Answer(await written(content, rows, texts))

    return Endpoint("/v1/embeddings", "Embeddings of length 1.", (Form(EmbeddingsRequest, embeddings),))


async def _texts(sent: str | list[str] | list[int] | list[list[int]]) -> list[str]:
    """The texts of all forms of input."""
    if isinstance(sent, str):
        return [sent]
    if not sent or isinstance(sent[0], str):
        return sent  # type: ignore[return-value]
    lists = [sent] if isinstance(sent[0], int) else sent
    return await asyncio.to_thread(texts_of_tokens, lists)


def _base64_list(rows: Rows) -> list[bytes]:
    """Each row as base64 of little-endian float32, in quotes."""
    return [b'"%b"' % b2a_base64(row.astype("<f4", copy=False).tobytes(), newline=False) for row in rows]


def _content(rows: list[bytes], name: str, tokens: int) -> bytes:
    """The JSON that OpenAI's clients read; `rows` are JSON already."""
    data = b",".join(
        b'{"object":"embedding","index":%d,"embedding":%b}' % (number, row) for number, row in enumerate(rows)
    )
    end = orjson.dumps({"model": name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
    return b'{"object":"list","data":[%b],%b' % (data, end[1:])
