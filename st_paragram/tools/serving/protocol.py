"""Connections with limits of size and time, which uvicorn's protocol for httptools does not have."""

from __future__ import annotations

import asyncio

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from st_paragram.tools.serving.schemas import error_of

MAX_HEAD = 65_536  # bytes of the request line and the headers
MAX_CONNECTIONS = 512  # of a process, which can often open only 1,024 files
RECEIVE_SECONDS = 60.0  # until a request has arrived
SEND_SECONDS = 60.0  # without reading any of an answer
CHECK_SECONDS = 5.0


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if its head is too large, or if it sends or reads too slowly."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the connection."""
        super().connection_made(transport)
        now = self.loop.time()
        self._received = 0  # bytes of the last call of `data_received`
        self._head = 0  # bytes since the beginning of the request or the last part of its body
        self._began: float | None = now  # start of the request that is arriving
        self._unsent = 0
        self._last_read = now
        self._watch: asyncio.TimerHandle | None = None
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(503, f"{MAX_CONNECTIONS} connections are open; try again in a second")
        else:
            self._watch = self.loop.call_later(CHECK_SECONDS, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        if self._watch:
            self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request."""
        self._received = len(data)
        self._head += len(data)
        super().data_received(data)
        if self._head > MAX_HEAD and not self.transport.is_closing():
            self._refuse(431, _TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin a request: all that has just arrived may be its head."""
        self._head = self._received
        self._began = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Refuse a head that arrived at once and is too large."""
        if self._head > MAX_HEAD:
            lines = sum(len(name) + len(value) + 4 for name, value in self.headers)
            if len(self.url) + lines > MAX_HEAD:
                raise ValueError(_TOO_LARGE)  # ends the parser, which calls `send_400_response`
        self._head = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body; the application limits its size."""
        self._head = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._began = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too large a head."""
        if self._head > MAX_HEAD:
            self._refuse(431, _TOO_LARGE)
        else:
            self._refuse(400, "this is not an HTTP request")

    def _check(self) -> None:
        """Close the connection if the client has done nothing for too long."""
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._last_read = now
        self._unsent = unsent
        if now - self._last_read > SEND_SECONDS:
            self.transport.abort()
            return
        # The server may wait, too: a request does not arrive while an earlier request is answered
        is_late = self._began is not None and now - self._began > RECEIVE_SECONDS
        if is_late and not self.flow.read_paused:
            self._refuse(408, f"the request took longer than {RECEIVE_SECONDS:.0f} seconds to arrive")
        self._watch = self.loop.call_later(CHECK_SECONDS, self._check)

    def _refuse(self, status: int, message: str) -> None:
        """Send an error, unless an answer has begun, and close the connection."""
        if self.cycle is None or not self.cycle.response_started:
            content = orjson.dumps(error_of(status, message))
            head = [b"content-type: application/json", b"content-length: %d" % len(content), b"connection: close"]
            if status == 503:
                head.append(b"retry-after: 1")
            self.transport.write(STATUS_LINE[status] + b"\r\n".join(head) + b"\r\n\r\n" + content)
        self.transport.close()


_TOO_LARGE = f"the address and the headers are larger than {MAX_HEAD} bytes"
