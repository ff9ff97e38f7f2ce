"""Which address does what: exact paths, the methods they allow, and the requests they read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from st_paragram.tools.serving.messages import Answer, Refused, Request
from st_paragram.tools.serving.reading import RequestSchema, read_json, validated

_UNKNOWN_ADDRESS = (
    "there is nothing at this address; POST to /v1/embeddings, /v1/rerank, /embed, /score or /search, "
    "or GET /v1/models, /info, /health or /metrics"
)


@dataclass(frozen=True)
class Form:
    """One form of request that an address reads, and the endpoint that answers it."""

    schema: type[RequestSchema]
    answer: Callable[[Request, Any], Awaitable[Answer]]


@dataclass(frozen=True)
class Page:
    """An address that is read with GET.

    Attributes:
        path: the address.
        summary: what it shows.
        answer: given what follows the path, "" for the path itself.
        has_children: addresses below the path are passed on, without their first part.
        in_thread: the answer takes long.
    """

    path: str
    summary: str
    answer: Callable[[str], Answer]
    has_children: bool = False
    in_thread: bool = False

    allowed = "GET, HEAD"

    async def respond(self, request: Request) -> Answer:
        """The page."""
        rest = request.path[len(self.path) + 1 :]
        return await asyncio.to_thread(self.answer, rest) if self.in_thread else self.answer(rest)


@dataclass(frozen=True)
class Endpoint:
    """An address that JSON is posted to, in one form or another.

    Attributes:
        path: the address.
        summary: what it does, in a sentence.
        forms: of its requests; the first one has no mark.
        example: a request.
        is_on: it answers; a page for people does not show others.
    """

    path: str
    summary: str
    forms: tuple[Form, ...]
    example: Mapping[str, Any]
    is_on: bool = True

    allowed = "POST"

    async def respond(self, request: Request) -> Answer:
        """Read the request in the form that it has, and answer it."""
        value = read_json(request)
        form = next((form for form in self.forms if form.schema.texts_field in value), self.forms[0])
        return await form.answer(request, validated(form.schema, value))


class Route(Protocol):
    """An address, and what answers there."""

    @property
    def path(self) -> str:
        """The address."""

    @property
    def allowed(self) -> str:
        """Its methods, with commas between."""

    async def respond(self, request: Request) -> Answer:
        """Answer a request by one of the methods."""


class Routes:
    """All addresses of a server."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.by_path: dict[str, Route] = {route.path: route for route in routes}

    async def respond(self, request: Request) -> Answer:
        """Hand a request to the route of its path.

        Raises:
            Refused: there is nothing at this path (404), or not by this method (405).
        """
        route = self.by_path.get(request.path) or self._parent(request.path)
        if route is None:
            raise Refused(404, _UNKNOWN_ADDRESS)
        if request.method not in route.allowed.split(", "):
            message = f"this method is not allowed here; use {route.allowed.partition(',')[0]}"
            raise Refused(405, message, headers={"Allow": route.allowed})
        return await route.respond(request)

    def _parent(self, path: str) -> Route | None:
        pages = (route for route in self.by_path.values() if isinstance(route, Page) and route.has_children)
        return next((page for page in pages if path.startswith(f"{page.path}/")), None)
