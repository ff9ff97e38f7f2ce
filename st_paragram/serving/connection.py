"""Connections of uvicorn's, with a limit of time for headers, and with errors in our form."""

from __future__ import annotations

import asyncio
import json

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from st_paragram.serving import errors


def connection(seconds: float) -> type[H11Protocol]:
    """The class of connections whose headers must have come within so many seconds of their first byte.

    The first header's time begins when the connection is made. Between requests, uvicorn's own limit holds.
    """

    class Connection(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_watching()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """Refuse what is no HTTP; `msg` has nothing of the request in it."""
            content = json.dumps(errors.body(400, msg)).encode()
            head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
            self.transport.close()

        def _watch(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._stop_watching()
            elif self._late is None:
                self._late = self.loop.call_later(seconds, self.transport.close)

        def _stop_watching(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Connection
