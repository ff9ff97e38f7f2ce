"""Requests over HTTP: certificates checked, https never left, failures sorted into what may pass and what will not."""

from __future__ import annotations

import email.utils
import socket
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from st_paragram.core.version import installed_version
from st_paragram.errors import DownloadError, one_line

if TYPE_CHECKING:
    from httpcore import ConnectionPool, Response

    from st_paragram.tools.corpora.fetching.connection import Deadline

_REDIRECTED = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_USABLE = (200, 206)
_MOST_REDIRECTIONS = 10
_LONGEST = 1000  # characters of a header's value
MOST_SMALL = 1 << 22  # bytes of a small document


class TryAgain(Exception):
    """A failure that may pass.

    Attributes:
        wait: Seconds the server asks for, None if it does not say.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(one_line(reason))
        self.wait = wait


class NameNotFound(TryAgain):
    """The name of the server is not known: no network, or no such server. To ask again in this run is of no use."""


class NotThere(DownloadError):
    """The server answers that there is no such file (404, 410)."""


class StartAnew(Exception):
    """The server does not continue the part that is there: it ends beyond the file (416), or is of another file."""


class Answer:
    """An answer whose headers have come, and a body that comes piece by piece.

    Attributes:
        status: 200, or 206 for a part.
        length: The number of bytes of the body; None if the server does not say.
    """

    def __init__(self, response: Response, pool: ConnectionPool, url: str, deadline: Deadline) -> None:
        """Take over an answer to a request for `url`, of which nothing has been read."""
        self._response, self._pool, self._url, self._deadline = response, pool, url, deadline
        self._headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        self._blocks, self._rest = filter(None, response.iter_stream()), b""
        self.status = response.status
        stated = None if "transfer-encoding" in self._headers else self._headers.get("content-length")
        self.length = None if stated is None else int(stated)

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._response.close()
        self._pool.close()

    def header(self, name: str) -> str | None:
        """The value of a header without characters that cannot be printed; None if it is missing or absurdly long."""
        value = self._headers.get(name.lower())
        return None if value is None or len(value) > _LONGEST else one_line(value, _LONGEST)

    def leads_to(self) -> str | None:
        """The address that a redirection names; None for any other answer."""
        return self._headers.get("location") if self.status in _REDIRECTED else None

    def reason(self) -> str:
        """The status in words, for messages."""
        words = one_line(self._response.extensions.get("reason_phrase", b"").decode("latin-1"), 80)
        return f"HTTP {self.status} ({words or 'no reason given'})"

    def read(self, most: int) -> bytes:
        """The next bytes, at most `most`; none at the end. They have the whole span of the deadline to come.

        Raises:
            TryAgain: Nothing comes, or the connection breaks.
        """
        self._deadline.restart()
        return self._next(most, "no byte for")

    def read_all(self, most: int) -> bytes:
        """The whole body, by the deadline by which the answer had to begin.

        Raises:
            TryAgain: It does not all come.
            DownloadError: It has more than `most` bytes.
        """
        body = bytearray()
        while block := self._next(most + 1, "not complete within"):
            body += block
            if len(body) > most:
                raise DownloadError(f"{self._url}: more than {most:,} bytes, which cannot be right; try again later")
        return bytes(body)

    def _next(self, most: int, too_late: str) -> bytes:
        from st_paragram.tools.corpora.fetching.connection import plain_errors

        try:
            with plain_errors():
                block = self._rest or next(self._blocks, b"")
        except TimeoutError as error:
            raise TryAgain(f"{too_late} {self._deadline.seconds:g} s") from error
        except OSError as error:
            raise TryAgain(f"connection broke ({error})") from error
        self._rest = block[most:]
        return block[:most]


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
        StartAnew: 416.
        DownloadError: Anything that will not pass: forbidden, a bad certificate, a wrong address.
    """
    from st_paragram.tools.corpora.fetching.connection import Deadline, send

    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{one_line(url)}: no web address (http, https); correct it")
    sent = {"User-Agent": f"st_paragram/{installed_version()}", "Accept-Encoding": "identity", **(headers or {})}
    deadline, place = Deadline(timeout), url
    for _ in range(_MOST_REDIRECTIONS):
        try:
            pool, response = send(method, place, sent, deadline)
        except (OSError, ValueError, OverflowError) as error:  # the latter two of addresses that are none
            raise _failure(url, error, place != url, timeout) from error
        answer = Answer(response, pool, url, deadline)
        if answer.status in _USABLE:
            return answer
        answer.close()  # whatever is sent along is not read
        leads_to = answer.leads_to()
        if leads_to is None:
            raise _refusal(url, answer)
        place = _followed(place, leads_to)
    raise DownloadError(f"{url}: it leads on and on; try again later")


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


def _followed(place: str, leads_to: str) -> str:
    """Where a redirection leads, never from https to anything less, nor away from the web."""
    try:
        following = urljoin(place, leads_to)
    except ValueError:  # brackets that are not an address
        following = leads_to
    if place.startswith("https:") and not following.startswith("https:"):
        raise DownloadError(f"{place}: leads to {one_line(following)}, which is not https; it is not followed")
    if not following.startswith(("http:", "https:")):
        raise DownloadError(f"{place}: leads to {one_line(following)}, which is not a web address; it is not followed")
    return following


def _failure(url: str, error: Exception, followed: bool, timeout: float) -> Exception:
    """What to raise where no answer came; `followed` says whether the address asked last is another one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        words = one_line(getattr(error, "verify_message", error))
        return DownloadError(
            f"{url}: the server's certificate cannot be trusted ({words}); nothing is fetched from it. Check this "
            "machine's clock and certificates"
        )
    if isinstance(error, socket.gaierror) and not followed:
        return NameNotFound(error.strerror or str(error))
    if isinstance(error, TimeoutError):
        return TryAgain(f"no answer within {timeout:g} s")
    if isinstance(error, OSError):
        return TryAgain(str(error) or type(error).__name__)
    words = "the name of its server cannot be" if isinstance(error, UnicodeError) else one_line(error)
    leads = "leads to no address" if followed else "no address"
    return DownloadError(f"{url}: {leads} that can be asked ({words}); correct it, or try another place")


def _refusal(url: str, answer: Answer) -> Exception:
    status, reason = answer.status, answer.reason()
    if status in (404, 410):
        return NotThere(f"{url}: {reason}")
    if status == 416:
        return StartAnew(reason)
    if status in _PASSING:
        return TryAgain(reason, _seconds(answer.header("Retry-After")))
    if 300 <= status < 400:
        return DownloadError(f"{url}: HTTP {status}: it leads to nothing that can be fetched; try again later")
    if status < 300:
        return DownloadError(f"{url}: HTTP {status}, where a file was expected; try again later")
    return DownloadError(f"{url}: {reason}")


def _seconds(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date (RFC 9110, 10.2.3); None for anything else."""
    if value is None or (value.isascii() and value.isdecimal() and len(value) <= 18):
        return None if value is None else int(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, LookupError, ArithmeticError, OSError):
        return None
