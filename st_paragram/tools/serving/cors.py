"""Which web pages may use the server from a browser: cross-origin resource sharing (CORS).

The Fetch standard defines it: a browser lets a page of another origin read an answer only if the answer names that
origin or `*`. Before it sends JSON or a key, it asks with an OPTIONS request, the preflight.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from st_paragram.errors import SettingsError, short
from st_paragram.tools.serving.messages import Answer

ANY = "*"
METHODS = ("GET", "HEAD", "POST")
_SECONDS = 600  # for which a browser may remember the answer to a preflight
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, \t-]*")  # those that HTTP allows


def parse_origin(text: str) -> str:
    """An origin in the form in which browsers send it: no capitals, no default port, no slash at the end.

    Args:
        text: Such as `https://app.example.org` or `http://localhost:3000`; or `*`, for the pages of all origins.

    Raises:
        SettingsError: It is not an origin.
    """
    origin = text.strip().lower().rstrip("/")
    scheme = origin.partition(":")[0]
    origin = origin.removesuffix(_DEFAULT_PORTS.get(scheme, " "))
    if origin == ANY:
        return origin
    if origin == "null":
        raise SettingsError("the origin null is that of every local file and sandboxed frame; serve the page over HTTP")
    if not _ORIGIN.fullmatch(origin):
        advice = "scheme, host and perhaps port, such as https://app.example.org, or '*' for all"
        raise SettingsError(f"{short(text)} is not an origin; --cors takes {advice}{_origin_in(text)}")
    return origin


def _origin_in(text: str) -> str:
    """What is probably meant, where an address was given in place of an origin."""
    try:
        parts = urlsplit(text.strip().lower())
    except ValueError:
        return ""
    origin = f"{parts.scheme}://{parts.netloc}"
    return f"; did you mean {origin}?" if _ORIGIN.fullmatch(origin) else ""


class Cors:
    """Answers preflights, and gives the headers with which pages of other origins can read answers.

    Cookies are never asked for: what protects a server is its key, which a page has to send itself.

    Args:
        origins: As `parse_origin` gives them; `*` is for all.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self._allows_all = ANY in origins

    def headers(self, request: Mapping[bytes, bytes]) -> dict[str, str]:
        """Headers of every answer; `request` has those of the request, by their names in lower case."""
        if self._allows_all:
            return {"Access-Control-Allow-Origin": ANY, "Access-Control-Expose-Headers": "Retry-After"}
        vary = {"Vary": "Origin"}  # also where the origin is refused or missing: caches must keep the answers apart
        if (origin := request.get(b"origin")) not in self._origins or origin is None:
            return vary
        allowed = {"Access-Control-Allow-Origin": origin.decode(), "Access-Control-Expose-Headers": "Retry-After"}
        return vary | allowed

    def preflight(self, method: str, request: Mapping[bytes, bytes]) -> Answer | None:
        """The answer to a preflight, to which `headers` are still to be added; None: the request is something else."""
        asked = request.get(b"access-control-request-method")
        if method != "OPTIONS" or asked is None or (origin := request.get(b"origin")) is None:
            return None
        if not self._allows_all and origin not in self._origins:
            return Answer.error(400, "pages of this origin may not use this server; it can be started with --cors")
        if asked.decode("latin-1") not in METHODS:
            return Answer.error(400, f"pages may use the methods {', '.join(METHODS)}")
        names = request.get(b"access-control-request-headers", b"")
        if not _HEADER_NAMES.fullmatch(names):
            return Answer.error(400, "Access-Control-Request-Headers does not hold names of headers")
        answer = Answer(b"", media_type="text/plain")
        answer.headers = {
            "Access-Control-Allow-Methods": ", ".join(METHODS),
            "Access-Control-Max-Age": str(_SECONDS),
        }
        if names:  # all are allowed: clients send some that describe themselves
            answer.headers["Access-Control-Allow-Headers"] = names.decode()
        return answer
