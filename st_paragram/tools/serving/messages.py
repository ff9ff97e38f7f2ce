"""Requests and answers as the endpoints see them, refusals among them, and the types of ASGI.

Errors have the form that OpenAI's clients expect, and never hold a text of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_Result = TypeVar("_Result")

JSON = "application/json"
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 503: "server_busy"}
_HEADERS = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}


class ClientGone(Exception):
    """The client closed its connection before the answer was ready."""


class Refused(Exception):
    """A request that is refused, with the status of the answer, the field that it is about, and headers."""

    def __init__(
        self, status: int, message: str, field: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.headers = status, message, field, headers or {}


@dataclass(frozen=True)
class Request:
    """A request whose body has been read.

    Attributes:
        method: e.g. "POST".
        path: without the query, percent-decoded.
        headers: by their names in lower case.
        body: its bytes.
        receive: ASGI's callable, for news of the connection.
        scheme: of the address that the client used: "https" behind a proxy that says so.
    """

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    body: bytes
    receive: Receive
    scheme: str = "http"

    async def unless_gone(self, work: Awaitable[_Result]) -> _Result:
        """Wait for work that takes a while, and cancel it if the client leaves.

        Raises:
            ClientGone: the client left.
        """
        task, gone = asyncio.ensure_future(work), asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            raise ClientGone
        finally:
            gone.cancel()
            task.cancel()

    async def _gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


@dataclass
class Answer:
    """A complete answer."""

    content: bytes
    status: int = 200
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: object) -> Answer:
        """The answer that holds a value as JSON."""
        return cls(orjson.dumps(value))

    @classmethod
    def error(cls, status: int, message: str, field: str | None = None) -> Answer:
        """The answer that reports an error, `field` being the part of the request that it is about."""
        kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        content = orjson.dumps({"error": {"message": message, "type": kind, "param": field, "code": None}})
        return cls(content, status, headers=dict(_HEADERS.get(status, {})))

    @classmethod
    def refusal(cls, refused: Refused) -> Answer:
        """The answer to a request that is refused."""
        answer = cls.error(refused.status, refused.message, refused.field)
        answer.headers.update(refused.headers)
        return answer

    async def send(self, send: Send, further_headers: Mapping[str, str]) -> None:
        """Send status, headers and content."""
        headers = [
            (b"content-type", self.media_type.encode()),
            (b"content-length", str(len(self.content)).encode()),
            *(
                (name.lower().encode(), value.encode())
                for name, value in (*self.headers.items(), *further_headers.items())
            ),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.content})
