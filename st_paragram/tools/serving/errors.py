"""Errors in the form that OpenAI's clients expect; never with a text of the request in them."""

from __future__ import annotations

from st_paragram.errors import SettingsError
from st_paragram.tools.serving.batching import TooBusy
from st_paragram.tools.serving.messages import Answer

_TYPES = {401: "authentication_error", 404: "not_found_error", 503: "server_busy"}
_HEADERS = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}


class Refused(Exception):
    """A request that is refused, with the status of the answer."""

    def __init__(
        self, status: int, message: str, field: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.headers = status, message, field, headers or {}


def answer(status: int, message: str, field: str | None = None) -> Answer:
    """The answer that reports an error, `field` being the part of the request that it is about."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    refusal = Answer.json({"error": {"message": message, "type": kind, "param": field, "code": None}}, status)
    refusal.headers.update(_HEADERS.get(status, {}))
    return refusal


def expected(error: Exception) -> Answer | None:
    """The answer to an error that is the request's fault, or passes by itself; None for the server's own failures."""
    if isinstance(error, Refused):
        refusal = answer(error.status, error.message, error.field)
        refusal.headers.update(error.headers)
        return refusal
    if isinstance(error, TooBusy):
        return answer(503, f"{error}; try again in a second")
    if isinstance(error, SettingsError):
        return answer(400, str(error))
    return None


def failed() -> Answer:
    """The answer to a request that made the server fail."""
    return answer(500, "the server failed; its log has the kind of error")
