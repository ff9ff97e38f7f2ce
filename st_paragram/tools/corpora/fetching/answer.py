"""The answer to a request: its headers, fit to be read and shown, and a body that comes piece by piece."""

from __future__ import annotations

from http.client import HTTPException, HTTPResponse

from st_paragram.core.damage import printable
from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.deadline import Deadline

_LONGEST = 1000  # characters of a header's value


class TryAgain(Exception):
    """A failure that may pass.

    Attributes:
        wait: Seconds the server asks for, None if it does not say.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(printable(reason))
        self.wait = wait


class Answer:
    """An answer whose headers have come.

    Attributes:
        status: 200, or 206 for a part.
        length: The number of bytes of the body; None if the server does not say.
    """

    def __init__(self, response: HTTPResponse, url: str, deadline: Deadline) -> None:
        """Take the answer over.

        Args:
            response: As it came.
            url: What was asked for, for messages.
            deadline: Watches over the connection.

        Raises:
            DownloadError: It says nothing that can be relied on about its body; the answer is closed.
        """
        self.status = response.status
        self._response, self._deadline = response, deadline
        try:
            self.length = _length(response, url)
        except DownloadError:
            response.close()
            raise

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def header(self, name: str) -> str | None:
        """The value of a header without characters that cannot be printed; None if it is missing or absurdly long."""
        value = self._response.headers.get(name)
        return None if value is None or len(value) > _LONGEST else printable(value, _LONGEST)

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
        while block := self._next(most + 1 - len(body), "not complete within"):
            body += block
        if len(body) > most:
            raise DownloadError(
                f"{self._response.url}: more than {most:,} bytes, which cannot be right; try again later"
            )
        if self.length is not None and len(body) < self.length:
            raise TryAgain(f"broke off after {len(body):,} of {self.length:,} bytes")
        return bytes(body)

    def _next(self, most: int, too_late: str) -> bytes:
        try:
            return self._response.read1(most)
        except TimeoutError as error:
            raise TryAgain(f"{too_late} {self._deadline.seconds:g} s") from error
        except (OSError, HTTPException, ValueError) as error:  # a damaged chunk is a ValueError
            raise TryAgain(f"connection broke ({error})") from error


def _length(response: HTTPResponse, url: str) -> int | None:
    """How many bytes the body has: one plain number or none, and none beside the lengths of chunks (RFC 9112, 6.3).

    Raises:
        DownloadError: It is stated in a way that readers may take for one thing or another.
    """
    codings = response.headers.get_all("Transfer-Encoding", [])
    stated = sorted({value.strip() for value in response.headers.get_all("Content-Length", [])})
    if [coding.lower() for coding in codings] not in ([], ["chunked"]):
        raise DownloadError(
            f"{url}: sent in a form that was not asked for ({printable(', '.join(codings))}); try again later"
        )
    if codings or not stated:
        return None
    length = whole_number(stated[0])
    if length is None or len(stated) > 1:
        raise DownloadError(
            f"{url}: the server states no length that can be ({printable(', '.join(stated))}); try again later"
        )
    return length


def whole_number(text: str | None) -> int | None:
    """Read a number that a server sends: up to 18 plain digits. None for anything else, or for nothing."""
    text = (text or "").strip(" \t")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
