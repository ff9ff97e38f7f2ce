"""Connections over which nothing can be waited for beyond a deadline: not in any phase, and not byte by byte.

The time limit of a socket holds for each single wait, so that a server which sends a byte now and then would never be
given up. Here every wait gets what is left until the deadline: for connecting, for what a proxy says, for TLS (whose
handshake the standard library bounds as a whole), for the request, and for each piece of the answer.
"""

from __future__ import annotations

import functools
import io
import socket
import ssl
import urllib.request
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any

from st_paragram.tools.corpora.fetching.deadline import Deadline


class _Incoming(io.RawIOBase):
    """What comes over a socket, before the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 - any writable buffer
        self._sock.settimeout(self._deadline.left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    """An answer that is read before the deadline."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **options: Any) -> None:  # noqa: ANN401
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Incoming(sock, deadline))


class _Connection(HTTPConnection):
    """A connection that is made, and answered, before the deadline."""

    def __init__(self, host: str, *, deadline: Deadline, **options: Any) -> None:  # noqa: ANN401
        super().__init__(host, **options)
        self._deadline = deadline
        self._create_connection = self._dial
        self.response_class = functools.partial(_Response, deadline=deadline)  # type: ignore[assignment]

    def _dial(self, address: tuple[str, int], *unused: object) -> socket.socket:
        """Connect to one of the addresses of a host; they share the time that is left."""
        places = [place for *_, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)]
        for left in range(len(places), 0, -1):
            host, port = places[-left][:2]
            try:
                sock = socket.create_connection((str(host), int(port)), self._deadline.left() / left)
                sock.settimeout(self._deadline.left())  # for TLS, or the request
                return sock
            except OSError:
                if left == 1:
                    raise
        raise OSError(f"{address[0]} has no address")


class _SecureConnection(_Connection, HTTPSConnection):
    """The same over TLS."""


class Handler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens connections for urllib."""

    def __init__(self, deadline: Deadline) -> None:
        """Prepare it.

        Args:
            deadline: For all connections, and for what is read from them.
        """
        urllib.request.HTTPHandler.__init__(self)  # HTTPSHandler's may read all certificates, which takes time
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Send a request over http."""
        return self.do_open(functools.partial(_Connection, deadline=self._deadline), req)  # type: ignore[arg-type]

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Send a request over https; the certificate must be one that the system trusts, and the host's."""
        context = ssl.create_default_context()
        connection = functools.partial(_SecureConnection, deadline=self._deadline, context=context)
        return self.do_open(connection, req)  # type: ignore[arg-type]
