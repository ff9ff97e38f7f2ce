"""Embeddings: `POST /v1/embeddings`, as OpenAI's, and `POST /embed`, as text-embeddings-inference's."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from binascii import b2a_base64
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, StrictBool, StrictInt, StrictStr

from st_paragram.tools.serving.batching import Kind, Rows
from st_paragram.tools.serving.endpoints.service import Service, Truncating, row_list, written
from st_paragram.tools.serving.messages import Answer, Refused, Request
from st_paragram.tools.serving.reading import FAIL_FAST, Number, RequestSchema, Texts
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.served_model import unit_rows

#: The vocabulary of token numbers, which some clients send in place of texts: OpenAI's, which LangChain takes for
#: models that it does not know.
ENCODING = "cl100k_base"
#: The name under which tiktoken caches the vocabulary: the SHA-1 of the address that it would load it from.
CACHED_AS = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
#: Texts for examples of requests.
TEXTS = ["Where is the station?", "¿Dónde está la estación?"]
_ADVICE = "send texts (LangChain: check_embedding_ctx_length=False)"
_loading = threading.Lock()
_Tokens = Annotated[list[Annotated[StrictInt, Field(ge=0, le=2**31 - 1)]], FAIL_FAST]


class EmbeddingsRequest(RequestSchema):
    """`POST /v1/embeddings`, as OpenAI defines it.

    `input_type` is an addition: what the texts are, for models that embed questions and answers differently.
    """

    texts_field = "input"
    input: StrictStr | Texts | _Tokens | Annotated[list[_Tokens], FAIL_FAST]
    model: StrictStr
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Number | None = None
    input_type: Kind = Kind.SENTENCE


class EmbedRequest(Truncating):
    """`POST /embed`, as text-embeddings-inference defines it."""

    texts_field = "inputs"
    inputs: StrictStr | Texts
    normalize: StrictBool = True
    prompt_name: StrictStr | None = None
    dimensions: Number | None = None


def endpoints(service: Service) -> list[Endpoint]:
    """The endpoints: OpenAI's, whose embeddings have length 1, and one that answers a list of lists of numbers."""
    served = service.served

    async def embeddings(request: Request, asked: EmbeddingsRequest) -> Answer:
        service.check_model(asked.model)
        service.check_dimensions(asked.dimensions)
        texts = await _texts(asked.input, service)
        service.check_texts(texts, "input")
        served.check(asked.input_type)
        rows = await service.rows(request, texts, asked.input_type)

        def content() -> bytes:
            units = unit_rows(rows, asked.dimensions)
            as_list = _base64_list(units) if asked.encoding_format == "base64" else row_list(units)
            return _content(as_list, served.name, served.tokens(texts))

        return await written(content, rows.size, texts)

    async def embed(request: Request, asked: EmbedRequest) -> Answer:
        service.check_dimensions(asked.dimensions)
        if asked.prompt_name is not None:
            raise Refused(400, "prompts are not supported; leave prompt_name out", "prompt_name")
        sent = [asked.inputs] if isinstance(asked.inputs, str) else asked.inputs
        texts = asked.cut(sent, service.settings.max_characters)
        service.check_texts(texts, "inputs")
        rows = await service.rows(request, texts)

        def content() -> bytes:
            kept = unit_rows(rows, asked.dimensions) if asked.normalize else rows[:, : asked.dimensions]
            return b"[%b]" % b",".join(row_list(kept))

        return await written(content, rows.size)

    return [
        Endpoint(
            "/v1/embeddings",
            "Embeddings of length 1.",
            (Form(EmbeddingsRequest, embeddings),),
            {"model": served.name, "input": TEXTS},
        ),
        Endpoint("/embed", "Embeddings as a list of lists.", (Form(EmbedRequest, embed),), {"inputs": TEXTS}),
    ]


async def _texts(sent: str | list[str] | list[int] | list[list[int]], service: Service) -> list[str]:
    """The texts of all forms of input."""
    if isinstance(sent, str):
        return [sent]
    if not sent or isinstance(sent[0], str):
        return sent  # type: ignore[return-value]
    lists = [sent] if isinstance(sent[0], int) else sent
    service.check_number(len(lists), "input")
    return await asyncio.to_thread(_texts_of_tokens, lists, service.settings.max_characters)


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


def _texts_of_tokens(lists: Sequence[Sequence[int]], most: int) -> list[str]:
    """The texts of lists of token numbers, as far as the first one that is longer than `most` characters.

    A few bytes of a request can encode a hundred characters: what will be refused is not written out.

    Raises:
        Refused: the vocabulary is not on this machine, or has no token with one of the numbers.
    """
    with _loading:
        encoding = _encoding()
    if encoding is None:
        raise Refused(400, f"input has token ids, which this server cannot read; {_ADVICE}", "input")
    for number, tokens in enumerate(lists):
        if tokens and max(tokens) > encoding.max_token_value:
            seen = f"list {number} of input has a token id that {ENCODING} does not have"
            raise Refused(400, f"{seen}; {_ADVICE}", "input")
    texts: list[str] = []
    try:
        for tokens in lists:
            texts.append(encoding.decode(list(tokens)))
            if len(texts[-1]) > most:
                break
    except KeyError:  # numbers between the special tokens
        raise Refused(400, f"input has a token id that {ENCODING} does not have; {_ADVICE}", "input") from None
    return texts


@lru_cache(maxsize=1)
def _encoding() -> Any:  # noqa: ANN401 - tiktoken's class, where it is installed
    """The vocabulary, if tiktoken is installed and has it in its cache; a server fetches nothing."""
    try:
        import tiktoken
    except ImportError:
        return None
    return tiktoken.get_encoding(ENCODING) if (_cache() / CACHED_AS).is_file() else None


def _cache() -> Path:
    """The folder in which tiktoken looks."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    return Path(named) if named else Path(tempfile.gettempdir()) / "data-gym-cache"
