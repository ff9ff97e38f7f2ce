"""Connections that nobody can hold open beyond a deadline: not in any phase, and not byte by byte.

The time limit of a socket holds for each single wait, so a server that sends a byte now and then would never be given
up. Here every wait gets what is left until the deadline: connecting, what a proxy says, TLS (whose handshake the
standard library bounds as a whole), the request, and each piece of the answer.
"""

from __future__ import annotations

import socket
import ssl
import string
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import httpcore


class Deadline:
    """A span of time that can begin again; every wait first asks it how long to wait."""

    def __init__(self, seconds: float) -> None:
        """Begin the span of `seconds`."""
        self.seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Begin again."""
        self._end = time.monotonic() + self.seconds

    def left(self) -> float:
        """Seconds that are left, more than 0.

        Raises:
            TimeoutError: None are.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"nothing within {self.seconds:g} s")
        return left


class _Stream(httpcore.NetworkStream):
    """A stream that is read and written before the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline
        self.close, self.get_extra_info = stream.close, stream.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._deadline.left()), self._deadline)


class _Backend(httpcore.SyncBackend):
    """Opens streams before the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore.NetworkStream:  # noqa: ANN401
        """Connect to one of the addresses of a host; they share the time that is left."""
        places = [str(place[0]) for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        for left in range(len(places), 0, -1):
            try:
                return _Stream(super().connect_tcp(places[-left], port, self._deadline.left() / left), self._deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
        raise OSError(f"{host} has no address")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what the HTTP library raises into errors of the system, with the reason as it was.

    Raises:
        TimeoutError: The deadline has passed.
        OSError: The connection could not be made or broke, or what came is not HTTP.
    """
    try:
        yield
    except httpcore.TimeoutException as error:
        raise TimeoutError(str(error)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
        reason = error.args[0] if error.args else None
        raise reason if isinstance(reason, OSError) else ConnectionError(str(error)) from error


def send(
    method: str, url: str, headers: Mapping[str, str], deadline: Deadline
) -> tuple[httpcore.ConnectionPool, httpcore.Response]:
    """Send a request, through the proxy that the environment names for its address, and wait for the answer's headers.

    Args:
        method: GET or HEAD.
        url: http or https.
        headers: What to send besides Host.
        deadline: For the connection and whatever is read from it.

    Returns:
        What has to be closed at the end, and the answer, its body unread.

    Raises:
        ValueError: No address that can be asked.
        OSError: As `plain_errors`, or `socket.gaierror` for a name that is not known.
    """
    parts = urlsplit(url)
    if not parts.hostname or parts.username is not None:
        raise ValueError("no server in it" if not parts.hostname else "a user's name in it")
    host = parts.hostname.encode("idna").decode()
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    target = quote(path, encoding="iso-8859-1", safe=string.punctuation)
    port = "" if parts.port is None else f":{parts.port}"
    address = httpcore.URL(scheme=parts.scheme, host=host, port=parts.port, target=target)
    sent = {"Host": f"[{host}]{port}" if ":" in host else f"{host}{port}", "Connection": "close", **headers}
    pool = _pool(parts.scheme, parts.netloc, _Backend(deadline))
    try:
        with plain_errors():
            return pool, pool.handle_request(httpcore.Request(method, address, headers=[*sent.items()]))
    except BaseException:
        pool.close()
        raise


def _pool(scheme: str, place: str, backend: _Backend) -> httpcore.ConnectionPool:
    """What makes connections; over https, the certificate must be one that the system trusts, and the host's."""
    found = None if urllib.request.proxy_bypass(place) else urllib.request.getproxies().get(scheme)
    proxy = urlsplit(found if not found or "://" in found else f"http://{found}")
    context = ssl.create_default_context() if "https" in (scheme, proxy.scheme) else None
    if not found:
        return httpcore.ConnectionPool(ssl_context=context, network_backend=backend)
    if proxy.scheme not in ("http", "https") or not proxy.hostname:
        raise ValueError(f"the environment variable {scheme}_proxy is not an http or https proxy")
    return httpcore.HTTPProxy(
        httpcore.URL(scheme=proxy.scheme, host=proxy.hostname, port=proxy.port, target="/"),
        proxy_auth=(unquote(proxy.username), unquote(proxy.password or "")) if proxy.username else None,
        ssl_context=context,
        proxy_ssl_context=context if proxy.scheme == "https" else None,
        network_backend=backend,
    )
