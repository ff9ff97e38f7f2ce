"""Requests to servers that may be slow, broken or hostile, with all limits checked."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from st_paragram.errors import DownloadError, one_line

TIMEOUT = 30.0  # seconds for a connection and for each block
SLOWEST = 1000  # minimum bytes/s of a body, on average over each period
PERIOD = 60.0  # seconds
UNANNOUNCED: Final = 1 << 30  # maximum bytes of a body without an announced size
_BLOCK = 1 << 18  # maximum bytes read at a time
_REDIRECTS = 10
_POLL = 0.1  # seconds between looks at a transfer


class TryAgain(Exception):
    """A temporary failure, and the seconds that the server asks to wait."""

    def __init__(self, reason: object, seconds: float = 0.0) -> None:
        super().__init__(one_line(reason))
        self.seconds = seconds


class TooLargeError(DownloadError):
    """A body has more bytes than announced or allowed."""


class Transfer:
    """One request. A thread cuts it if `stop` is set or the server is too slow.

    Certificates are always verified. Bodies are neither decompressed nor read beyond their limit.
    The failures of the libraries become `TryAgain` or, if another try would not help,
    `DownloadError`.
    """

    def __init__(self, stop: threading.Event | None = None) -> None:
        self.size = 0  # bytes of the body so far
        self._session = _Session()
        self._answer: requests.Response | None = None
        self._stop = stop or threading.Event()
        self._done = threading.Event()
        self._reason = ""  # why the connection was cut
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Transfer:
        self._watcher.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._done.set()
        self._watcher.join()
        if self._answer is not None:
            self._answer.close()
        self._session.close()
        if self._reason and isinstance(error, Exception):
            raise DownloadError(self._reason) from error
        if isinstance(error, (requests.RequestException, urllib3.exceptions.HTTPError)):
            raise _failure(error) from error

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> requests.Response:
        """Send the request, follow redirects, and return the answer without its body."""
        for _ in range(_REDIRECTS + 1):
            self._answer = self._session.get(url, headers=headers, stream=True, timeout=TIMEOUT)
            location = _location(self._session, self._answer)
            if location is None:
                return self._answer
            self._answer.close()
            url = _target(url, location)
        raise DownloadError(f"redirected more than {_REDIRECTS} times, last to {one_line(url)}")

    def blocks(self, limit: int, kind: str = "allowed") -> Iterator[bytes]:
        """Yield the body as it comes; refuse more bytes than a limit of the named kind."""
        assert self._answer is not None
        body: urllib3.HTTPResponse = self._answer.raw
        while block := body.read1(_BLOCK, decode_content=False):
            self.size += len(block)
            if self.size > limit:
                raise TooLargeError(f"the server sent more than the {kind} {limit:,} bytes")
            yield block
        if self._reason:
            raise DownloadError(self._reason)

    def _watch(self) -> None:
        begin = time.monotonic()
        size = 0
        while not self._done.wait(_POLL):
            if self._stop.is_set():
                self._reason = "interrupted"
            elif time.monotonic() >= begin + PERIOD:
                if self.size - size < SLOWEST * PERIOD:
                    self._reason = (
                        f"the server sent fewer than {SLOWEST:,} bytes/s over {PERIOD:g} seconds"
                    )
                begin = time.monotonic()
                size = self.size
            if self._reason:
                self._cut()

    def _cut(self) -> None:
        """End all that waits for the server, in the headers or in the body."""
        for connection in self._session.connections:
            with suppress(OSError, AttributeError):  # not connected, or closed meanwhile
                connection.sock.shutdown(socket.SHUT_RDWR)
        if self._answer is not None:
            with suppress(OSError, ValueError, RuntimeError):
                self._answer.raw.shutdown()


def read_limited(url: str, limit: int) -> bytes:
    """Return the body of an answer, at most `limit` bytes."""
    with Transfer() as transfer:
        answer = transfer.get(url)
        answer.raise_for_status()
        check_encoding(answer)
        return b"".join(transfer.blocks(limit))


def check_encoding(answer: requests.Response) -> None:
    """Refuse a compressed body, which was not asked for."""
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise DownloadError(
            f"the server compressed the file (Content-Encoding: {one_line(encoding)}); use another"
            " server"
        )


class _Session(requests.Session):
    """A session that follows no redirects, since `requests` would read their bodies into memory."""

    def __init__(self) -> None:
        super().__init__()
        self.connections: list[Any] = []
        self.headers["Accept-Encoding"] = "identity"
        adapter = _Adapter(self.connections)
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        return None


class _Adapter(HTTPAdapter):
    """Lists its connections, which `requests` hides until the headers have come."""

    def __init__(self, connections: list[Any]) -> None:
        self._connections = connections
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        kind = type(pool).ConnectionCls

        def connection(**options: Any) -> Any:
            self._connections.append(kind(**options))
            return self._connections[-1]

        pool.ConnectionCls = connection
        return pool


def _location(session: requests.Session, answer: requests.Response) -> str | None:
    """Return the address in the header `Location` of a redirect; None for other answers."""
    try:
        return requests.Session.get_redirect_target(session, answer)
    except UnicodeError as error:  # neither ASCII nor UTF-8
        location = one_line(answer.headers["Location"])
        raise DownloadError(f"redirected to {location}, which is not a web address") from error


def _target(url: str, location: str) -> str:
    """Return the redirected address; refuse other schemes, and http after https."""
    schemes = ("https",) if url.lower().startswith("https:") else ("http", "https")
    try:
        target = urljoin(url, location)
        allowed = urlsplit(target).scheme in schemes
    except ValueError as error:
        raise DownloadError(
            f"redirected to {one_line(location)}, which is not a web address"
        ) from error
    if not allowed:
        raise DownloadError(
            f"redirected to {one_line(target)}, which is not {' or '.join(schemes)}"
        )
    return target


def _failure(error: BaseException) -> Exception:
    """Return our error: temporary, unless certificate, name or address are wrong."""
    lasting = isinstance(error, requests.exceptions.SSLError | requests.HTTPError | ValueError)
    while cause := error.__cause__ or error.__context__:
        error = cause
    if isinstance(error, socket.gaierror):
        return DownloadError(
            f"the server's name cannot be resolved ({error.strerror}); check the network"
        )
    return DownloadError(one_line(error)) if lasting else TryAgain(error)
