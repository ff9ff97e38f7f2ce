"""Requests over HTTP: certificates checked, https never left, failures sorted into what may pass and what will not."""

from __future__ import annotations

import email.utils
import socket
import ssl
import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage, InvalidURL
from typing import IO

from st_paragram.core.damage import printable
from st_paragram.core.version import installed_version
from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.answer import Answer, TryAgain, whole_number
from st_paragram.tools.corpora.fetching.connection import Handler
from st_paragram.tools.corpora.fetching.deadline import Deadline

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_USABLE = (200, 206)
MOST_SMALL = 1 << 22  # bytes of a small document


class NameNotFound(TryAgain):
    """The name of the server is not known: no network, or no such server. To ask again in this run is of no use."""


class NotThere(DownloadError):
    """The server answers that there is no such file (404, 410)."""


class RangeRefused(Exception):
    """The server cannot continue from where a part ends (416)."""


class HttpsStays(urllib.request.HTTPRedirectHandler):
    """Refuses to be led from https to anything less, and from http to anything that is not the web."""

    followed = False

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Follow, keeping the headers (the range asked for among them) and, unlike old Pythons, the method.

        Raises:
            DownloadError: It leads away from https.
        """
        if fp is not None:
            fp.close()  # whatever is sent along is not read
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise DownloadError(f"{req.full_url}: leads to {printable(newurl)}, which is not https; it is not followed")
        if not newurl.startswith(("http:", "https:")):
            raise DownloadError(
                f"{req.full_url}: leads to {printable(newurl)}, which is no web address; it is not followed"
            )
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and req.get_method() == "HEAD":
            request.method = "HEAD"
        self.followed = True
        return request


def open_url(url: str, headers: dict[str, str] | None = None, timeout: float = 30.0, method: str = "GET") -> Answer:
    """Send a request and return the answer, its body unread.

    Args:
        url: http or https.
        headers: To send besides our own.
        timeout: Seconds until the headers of the answer must have come, connections and redirections included.
        method: GET or HEAD.

    Raises:
        TryAgain: No connection, a timeout, an overloaded server.
        NameNotFound: The server's name cannot be resolved.
        NotThere: 404 and 410.
        RangeRefused: 416.
        DownloadError: Anything that will not pass: forbidden, a bad certificate, a wrong address.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{printable(url)}: no web address (http, https); correct it")
    sent = {"User-Agent": f"st_paragram/{installed_version()}", "Accept-Encoding": "identity", **(headers or {})}
    stays, deadline = HttpsStays(), Deadline(timeout)
    opener = urllib.request.build_opener(stays, Handler(deadline))
    try:
        response = opener.open(urllib.request.Request(url, headers=sent, method=method))
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(url, error) from error
    except (OSError, HTTPException, ValueError, OverflowError) as error:  # the latter of addresses that are none
        raise _failure(url, error, stays.followed, timeout) from error
    if response.status not in _USABLE:
        response.close()
        raise DownloadError(f"{url}: HTTP {response.status}, where a file was expected; try again later")
    return Answer(response, url, deadline)


def fetch_small(url: str, timeout: float = 30.0) -> bytes:
    """Ask for a small document.

    Args:
        url: http or https.
        timeout: Seconds until all of it must have come.

    Raises:
        TryAgain: As `open_url`.
        DownloadError: As `open_url`, or it has more than `MOST_SMALL` bytes.
    """
    with open_url(url, timeout=timeout) as answer:
        return answer.read_all(MOST_SMALL)


def _failure(url: str, error: Exception, followed: bool, timeout: float) -> Exception:
    """What to raise where no answer came; `followed` says whether the address asked last is another one."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        words = printable(getattr(reason, "verify_message", reason))
        return DownloadError(
            f"{url}: the server's certificate cannot be trusted ({words}); nothing is fetched from it. Check this "
            "machine's clock and certificates"
        )
    if isinstance(reason, socket.gaierror) and not followed:
        return NameNotFound(reason.strerror or str(reason))
    if isinstance(reason, TimeoutError):
        return TryAgain(f"no answer within {timeout:g} s")
    if isinstance(reason, InvalidURL | ValueError | OverflowError) and not isinstance(reason, OSError):
        words = "the name of its server cannot be" if isinstance(reason, UnicodeError) else printable(reason)
        leads = "leads to no address" if followed else "no address"
        return DownloadError(f"{url}: {leads} that can be asked ({words}); correct it, or try another place")
    return TryAgain(str(reason) or type(reason).__name__)


def _refusal(url: str, error: urllib.error.HTTPError) -> Exception:
    words = f"HTTP {error.code} ({printable(error.reason, 80) or 'no reason given'})"
    if error.code in (404, 410):
        return NotThere(f"{url}: {words}")
    if error.code == 416:
        return RangeRefused(url)
    if error.code in _PASSING:
        return TryAgain(words, _seconds(error.headers.get("Retry-After")))
    if 300 <= error.code < 400:
        return DownloadError(
            f"{url}: HTTP {error.code}: it leads on and on, or to nothing that can be fetched; try again later"
        )
    return DownloadError(f"{url}: {words}")


def _seconds(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date (RFC 9110, 10.2.3); None for anything else."""
    if value is None or (number := whole_number(value)) is not None:
        return None if value is None else number
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, LookupError, ArithmeticError, OSError):
        return None
