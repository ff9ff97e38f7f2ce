"""uvicorn's connections, with limits of time and size for what is not a body, and with errors in our form."""

from __future__ import annotations

import asyncio
from collections.abc import Sized

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from st_paragram.tools.serving.messages import Answer

_MOST_BYTES = 1 << 16  # of a header, of what is between two pieces of a body, and of what follows the last one
_MOST_AHEAD = 1000  # requests that one piece of data may hold behind a request that has no answer yet
_TOO_LARGE = "The header or the framing of the request is too large."


class _Refused(Exception):
    """What a callback of the parser refuses; the parser passes it on as the context of its own error."""


class _Flow(FlowControl):
    """Reads nothing more from a client while requests of that client wait for an earlier one."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


def connection(seconds: float) -> type[HttpToolsProtocol]:
    """The class of connections whose headers must be complete so many seconds after their first byte.

    The time of the first header begins when the connection is made. Between requests, uvicorn's own limit applies.
    """

    class Connection(HttpToolsProtocol):
        _late: asyncio.TimerHandle | None = None
        _in_head = False
        _is_deaf = False  # after an error, behind requests that are still answered
        _head = 0  # bytes of the header
        _overhead = 0  # bytes since the message began, or since the last piece of its body

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.flow = _Flow(transport, self.pipeline)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_watching()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._is_deaf:
                return
            self._overhead += len(data)
            self._unset_keepalive_if_required()
            self._feed(data)
            if self._overhead > _MOST_BYTES and not self.transport.is_closing():
                self.send_400_response(_TOO_LARGE)
            if self.cycle is None or self.cycle.response_complete:  # a line end between requests has begun nothing
                self._watch()

        def _feed(self, data: bytes) -> None:
            try:
                while data:
                    data = self._parsed(data)
            except httptools.HttpParserError as error:
                refused = error.__context__
                self.send_400_response(
                    str(refused) if isinstance(refused, _Refused) else "Invalid HTTP request received."
                )

        def _parsed(self, data: bytes) -> bytes:
            """Parse data; what is still to be parsed.

            A request that offers another protocol, such as HTTP/2, is parsed again as if it did not: the parser has
            taken its body for that protocol's.
            """
            try:
                self.parser.feed_data(data)
                return b""
            except httptools.HttpParserUpgrade as upgrade:
                rest = data[upgrade.args[0] :]
            method, version = self.parser.get_method(), self.parser.get_http_version()
            if method == b"CONNECT":
                self.send_400_response("This server is not a proxy.")
                return b""
            head = [b"%b %b HTTP/%b\r\n" % (method, self.url, version.encode())]
            head += [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            return b"".join([*head, b"\r\n", rest])

        def on_message_begin(self) -> None:
            self._in_head, self._head, self._overhead = True, 0, 0
            super().on_message_begin()
            self._watch()

        def on_url(self, url: bytes) -> None:
            self._head += len(url)
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_head:  # not after the body, where they mean nothing
                self._head += len(name) + len(value)
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._stop_watching()
            if self._head > _MOST_BYTES:
                raise _Refused(_TOO_LARGE)
            if len(self.pipeline) >= _MOST_AHEAD:
                raise _Refused("Too many requests are sent at once.")
            if not self.parser.should_upgrade():
                super().on_headers_complete()

        def on_message_complete(self) -> None:
            if not self.parser.should_upgrade():
                super().on_message_complete()

        def on_body(self, body: bytes) -> None:
            self._overhead = 0
            super().on_body(body)

        def send_400_response(self, msg: str) -> None:
            """Refuse what is not HTTP; `msg` holds nothing of the request.

            If it follows a complete request, that one is answered first, and the connection is closed.
            """
            cycle = self.cycle
            if cycle is not None and not (cycle.response_complete or cycle.more_body):
                cycle.keep_alive, self._is_deaf = False, True
                return
            if cycle is None or cycle.response_complete or not (cycle.response_started or self.pipeline):
                content = Answer.error(400, msg).content
                head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
                self.transport.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
            self.transport.close()

        def _watch(self) -> None:
            if self._late is None:
                self._late = self.loop.call_later(seconds, self.transport.close)

        def _stop_watching(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Connection
