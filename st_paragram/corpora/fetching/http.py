"""Requests over HTTP: certificates checked, https never left, failures sorted into what may pass and what will not."""

from __future__ import annotations

import email.utils
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage, HTTPResponse, InvalidURL
from typing import IO, Any

from st_paragram.errors import DownloadError
from st_paragram.version import installed_version

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
MOST_JSON = 1 << 26


class TryAgain(Exception):
    """A failure that may pass.

    Attributes:
        wait: Seconds the server asks for, None if it does not say.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class NameNotFound(TryAgain):
    """The name of the server is not known: no network, or no such server. To ask again in this run is of no use."""


class NotThere(DownloadError):
    """The server answers that there is no such file (404, 410)."""


class RangeRefused(Exception):
    """The server cannot continue from where a part ends (416)."""


class HttpsStays(urllib.request.HTTPRedirectHandler):
    """Refuses to be led from https to anything less, and from http to anything that is not the web."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Follow, keeping the headers (the range asked for among them) and, unlike old Pythons, the method.

        Raises:
            DownloadError: It leads away from https.
        """
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise DownloadError(f"{req.full_url}: leads to {newurl}, which is not https; it is not followed")
        if not newurl.startswith(("http:", "https:")):
            raise DownloadError(f"{req.full_url}: leads to {newurl}, which is no web address; it is not followed")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and req.get_method() == "HEAD":
            request.method = "HEAD"
        return request


def open_url(
    url: str, headers: dict[str, str] | None = None, timeout: float = 30.0, method: str = "GET"
) -> HTTPResponse:
    """Send a request and return the answer, its body unread.

    Args:
        url: http or https.
        headers: To send besides our own.
        timeout: In seconds, without a byte.
        method: GET or HEAD.

    Raises:
        TryAgain: No connection, a timeout, an overloaded server.
        NameNotFound: The server's name cannot be resolved.
        NotThere: 404 and 410.
        RangeRefused: 416.
        DownloadError: Anything that will not pass: forbidden, a bad certificate, a wrong address.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{url}: no web address (http, https); correct it")
    sent = {"User-Agent": f"st_paragram/{installed_version()}", "Accept-Encoding": "identity", **(headers or {})}
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    opener = urllib.request.build_opener(HttpsStays, secure)
    try:
        return opener.open(urllib.request.Request(url, headers=sent, method=method), timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(url, error) from error
    except (InvalidURL, UnicodeError) as error:
        raise DownloadError(f"{url}: no address that can be asked ({error}); correct it") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, ssl.SSLCertVerificationError):
            words = getattr(reason, "verify_message", reason)
            raise DownloadError(
                f"{url}: the server's certificate cannot be trusted ({words}); nothing is fetched from it. Check this "
                "machine's clock and certificates"
            ) from error
        if isinstance(reason, socket.gaierror):
            raise NameNotFound(reason.strerror or str(reason)) from error
        raise TryAgain(str(reason) or type(reason).__name__) from error


def fetch_json(url: str, timeout: float = 30.0) -> Any:  # noqa: ANN401
    """Ask for a small JSON document.

    Raises:
        TryAgain: As `open_url`.
        DownloadError: As `open_url`, or the answer is no JSON.
    """
    with open_url(url, timeout=timeout) as answer:
        try:
            body = answer.read(MOST_JSON)
        except (OSError, HTTPException) as error:
            raise TryAgain(f"broke off ({error})") from error
    try:
        return json.loads(body)
    except ValueError as error:
        raise DownloadError(f"{url}: the answer is no JSON (it begins {body[:30]!r}); try again later") from error


def _refusal(url: str, error: urllib.error.HTTPError) -> Exception:
    words = f"HTTP {error.code} ({error.reason})"
    if error.code in (404, 410):
        return NotThere(f"{url}: {words}")
    if error.code == 416:
        return RangeRefused(url)
    if error.code in _PASSING:
        return TryAgain(words, _seconds(error.headers.get("Retry-After")))
    return DownloadError(f"{url}: {words}")


def _seconds(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
