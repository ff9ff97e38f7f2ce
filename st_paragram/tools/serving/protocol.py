"""Connections with limits of size and time, which uvicorn's protocol does not have."""

from __future__ import annotations

import asyncio

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from st_paragram.tools.serving.answers import error_content

MAX_HEAD = 65_536  # bytes of the request line and the headers
MAX_CONNECTIONS = 512  # of a process, which can often open only 1,024 files
RECEIVE_SECONDS = 60.0  # until a request has arrived
SEND_SECONDS = 60.0  # without reading any of an answer
CHECK_SECONDS = 5.0
_TOO_LARGE = f"the address and the headers are larger than {MAX_HEAD} bytes"


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if its head is too large, or if it sends or reads too slowly."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the connection."""
        super().connection_made(transport)
        now = self.loop.time()
        self._head = 0  # bytes since the beginning of the request or the last part of its body
        self._request: object = None  # the `scope` of the request that has begun last
        self._watched: object = None  # the same, at the last check
        self._watched_since = now
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
        """Parse a part of a request, or several requests; bodies are limited elsewhere."""
        self._head += len(data)
        super().data_received(data)
        is_new = self.scope is not self._request
        if is_new:
            self._request = self.scope
            self._head = min(self._head, len(data))
        if self._head > MAX_HEAD and not self.transport.is_closing():
            self._check_head(is_new)

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        self._head = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too large a head."""
        if self._head > MAX_HEAD:
            self._refuse(431, _TOO_LARGE)
        else:
            self._refuse(400, "this is not an HTTP request")

    def _check_head(self, is_new: bool) -> None:
        """Refuse a head that is too large, or a long part that is neither head nor body."""
        # the whole head has arrived at once
        if is_new and self.cycle is not None and self.cycle.scope is self.scope:
            lines = sum(len(name) + len(value) + 4 for name, value in self.headers)
            if len(self.url) + lines <= MAX_HEAD:
                self._head = 0
                return
            self._refuse(431, _TOO_LARGE)
            self.cycle.disconnected = True
        else:
            self._refuse(431, _TOO_LARGE)

    def _check(self) -> None:
        """Close the connection if the client has sent or read too slowly."""
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._last_read = now
        self._unsent = unsent
        if now - self._last_read > SEND_SECONDS:
            self.transport.abort()
            return
        cycle = self.cycle
        has_arrived = cycle is not None and cycle.scope is self.scope and not cycle.more_body
        # The server may wait, too: a request does not arrive while an earlier request is answered
        if has_arrived or self.scope is not self._watched or self.flow.read_paused:
            self._watched = self.scope
            self._watched_since = now
        if now - self._watched_since > RECEIVE_SECONDS:
            if self.scope is None:
                self.transport.close()  # nothing has arrived
            else:
                self._refuse(
                    408, f"the request took longer than {RECEIVE_SECONDS:.0f} seconds to arrive"
                )
        self._watch = self.loop.call_later(CHECK_SECONDS, self._check)

    def _refuse(self, status: int, message: str) -> None:
        """Send an error, unless an answer has begun, and close the connection."""
        if self._can_answer():
            content = orjson.dumps(error_content(status, message))
            head = [
                b"content-type: application/json",
                b"content-length: %d" % len(content),
                b"connection: close",
            ]
            if status == 503:
                head.append(b"retry-after: 1")
            self.transport.write(STATUS_LINE[status] + b"\r\n".join(head) + b"\r\n\r\n" + content)
        self.transport.close()

    def _can_answer(self) -> bool:
        """Whether no answer is under way, so that an error can be sent."""
        cycle = self.cycle
        if cycle is None:
            return True
        if cycle.scope is not self.scope:  # an earlier request
            return cycle.response_complete
        return not cycle.response_started
