"""uvicorn's connections, with limits of time and size for what is not a body, and with errors in our form."""

from __future__ import annotations

import asyncio

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from st_paragram.tools.serving import errors

_MOST_BYTES = 1 << 16  # of a header, of what is between two pieces of a body, and of what follows the last one


def connection(seconds: float) -> type[HttpToolsProtocol]:
    """The class of connections whose headers must be complete so many seconds after their first byte.

    The time of the first header begins when the connection is made. Between requests, uvicorn's own limit applies.
    """

    class Connection(HttpToolsProtocol):
        _late: asyncio.TimerHandle | None = None
        _in_head = False
        _overhead = 0  # bytes since the message began, or since the last piece of its body

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_watching()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self._overhead += len(data)
            self._unset_keepalive_if_required()
            self._feed(data)
            if self._overhead > _MOST_BYTES and not self.transport.is_closing():
                self.send_400_response("The header or the framing of the request is too large.")

        def _feed(self, data: bytes) -> None:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                self._decline_upgrade(data[upgrade.args[0] :])
            except httptools.HttpParserError:
                self.send_400_response("Invalid HTTP request received.")

        def _decline_upgrade(self, rest: bytes) -> None:
            """Read a request that offers another protocol, such as HTTP/2, as if it did not.

            The parser has taken the body for that protocol's.
            """
            method = self.parser.get_method()
            if method == b"CONNECT":
                self.send_400_response("This server is not a proxy.")
                return
            head = [method, b" ", self.url, b" HTTP/1.1\r\n"]
            for name, value in self.headers:
                if name != b"upgrade":
                    head += [name, b": ", value, b"\r\n"]
            self.parser = httptools.HttpRequestParser(self)
            self._feed(b"".join([*head, b"\r\n", rest]))

        def on_message_begin(self) -> None:
            self._in_head, self._overhead = True, 0
            super().on_message_begin()
            self._watch()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_head:  # not after the body, where they mean nothing
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._stop_watching()
            if not self.parser.should_upgrade():
                super().on_headers_complete()

        def on_message_complete(self) -> None:
            if not self.parser.should_upgrade():
                super().on_message_complete()

        def on_body(self, body: bytes) -> None:
            self._overhead = 0
            super().on_body(body)

        def send_400_response(self, msg: str) -> None:
            """Refuse what is not HTTP; `msg` holds nothing of the request."""
            content = errors.answer(400, msg).content
            head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
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
