"""What goes wrong with the hub, in one line that says what to do and never shows a token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from st_paragram.errors import ParagramError, one_line

_TOKEN = re.compile(r"hf_[A-Za-z0-9]{4,}|(?<=Bearer )\S+")

_BY_STATUS = {
    401: "the hub rejects the token; create a token with write access in the hub's settings, and put it into HF_TOKEN",
    402: "the account may not have this repository without payment; choose another kind of repository or account",
    403: "the token has no write access there; use your own or your organization's name, and a token with write access",
    404: "there is no such repository, or the token may not see it; check the name and the token",
    409: "it already exists but is invisible to this token, or another change is in progress; choose another "
    "name, or try again",
    412: "it was changed in the meantime, and nothing was committed; check it, and push again",
    413: "a file is too large for the hub; make the model smaller with `st-paragram export`",
    429: "too many requests; wait a few minutes and push again: files that arrived are not sent twice",
}


class HubError(ParagramError):
    """A model that was not uploaded: no token, a refusal of the hub, no network."""


@contextmanager
def told_in_a_line(repository: str, token: str | None) -> Iterator[None]:
    """Turn whatever the hub's client raises into a `HubError`.

    Args:
        repository: `owner/name`, which the message names.
        token: which no message may show.

    Raises:
        HubError: the body raised anything but an error of this package.
    """
    try:
        yield
    except ParagramError:
        raise
    except Exception as error:  # the client raises its own errors, httpx', OSError, ValueError and RuntimeError
        raise HubError(f"{repository}: {without_token(_reason(error), token)}") from None


def without_token(text: str, token: str | None) -> str:
    """A text in one line, with tokens left out."""
    return one_line(_TOKEN.sub("[token]", text.replace(token, "[token]") if token else text), 500)


def _reason(error: BaseException) -> str:
    causes = list(_causes(error))
    for one in causes:
        if isinstance(one, OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE is set, so nothing is sent; unset it and push again"
        if isinstance(one, HfHubHTTPError) or _is_of_client(one, "HTTPStatusError"):
            return _refusal(one)
        if _is_of_client(one, "TransportError"):
            said = str(one) or type(one).__name__
            return f"the hub at {constants.ENDPOINT} cannot be reached ({said}); check the network, and push again"
    said = str(error).strip() or type(error).__name__
    return f"the upload failed ({said}); push again"


def _is_of_client(error: BaseException, name: str) -> bool:
    """Whether an error is this one of httpx, or of httpx2, which newer clients of the hub speak through."""
    packages = {base.__module__.partition(".")[0] for base in type(error).__mro__ if base.__name__ == name}
    return bool(packages & {"httpx", "httpx2"})


def _refusal(error: Any) -> str:  # noqa: ANN401 - of the hub's client, or of what it speaks through
    status = error.response.status_code
    said = getattr(error, "server_message", None)
    known = _BY_STATUS.get(status)
    if known is None:
        known = "the hub has an internal error; push again later" if status >= 500 else "the hub refuses the request"
    return f"{known} (HTTP {status}{f': {one_line(said, 200)}' if said else ''})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was raised from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
