"""What went wrong, in the form in which OpenAI's clients expect it; never with a text of the request in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from st_paragram.errors import SettingsError
from st_paragram.serving.batching import TooBusy
from st_paragram.serving.refusals import reason

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

_UNKNOWN_ADDRESS = (
    "there is nothing at this address; POST to /v1/embeddings, /score or /search, "
    "or GET /v1/models, /health or /metrics"
)
_TYPES = {401: "authentication_error", 404: "not_found_error", 503: "server_busy"}


class Refused(Exception):
    """A request that is refused, with the status of the answer."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.field = status, message, field


def body(status: int, message: str, field: str | None = None) -> dict[str, Any]:
    """The JSON of an error."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": field, "code": None}}


def answer(status: int, message: str, field: str | None = None) -> Response:
    """The whole answer of an error."""
    from fastapi.responses import JSONResponse

    headers = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}.get(status)
    return JSONResponse(body(status, message, field), status, headers=headers)


def handle_errors(app: FastAPI) -> None:
    """Have an application answer every error in this form."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    @app.exception_handler(Refused)
    async def _refused(_: Request, error: Refused) -> Response:
        return answer(error.status, error.message, error.field)

    @app.exception_handler(TooBusy)
    async def _busy(_: Request, error: TooBusy) -> Response:
        return answer(503, f"{error}; try again in a second")

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        content_type = request.headers.get("content-type", "")
        return answer(400, *reason(error.errors()[0], request.scope["path"], error.body, content_type))

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        headers = error.headers or {}  # 405 names the methods that are allowed
        told = {404: _UNKNOWN_ADDRESS, 405: f"this method is not allowed here; use {headers.get('Allow', 'another')}"}
        refusal = answer(error.status_code, told.get(error.status_code, str(error.detail)))
        refusal.headers.update(headers)
        return refusal

    @app.exception_handler(SettingsError)
    async def _known(_: Request, error: SettingsError) -> Response:
        return answer(400, str(error))

    @app.exception_handler(Exception)
    async def _unknown(_: Request, error: Exception) -> Response:
        return failed()  # it passes on afterwards, and is logged where it is caught


def failed() -> Response:
    """The answer to a request that the server failed at."""
    return answer(500, "the server failed; its log has the kind of error")
