"""Answers and errors in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from st_paragram.errors import SettingsError


def json_answer(value: object, status: int = 200, headers: Any = None) -> Response:
    """Return a value, possibly with arrays, as JSON."""
    content = orjson.dumps(value, np.ascontiguousarray, orjson.OPT_SERIALIZE_NUMPY)
    return Response(content, status, headers, "application/json")


def error_content(status: int, message: str, field: str | None = None) -> dict[str, Any]:
    """Return the content of an error in the form that OpenAI's clients expect."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": field, "code": None}}


def error_answer(
    status: int, message: str, field: str | None = None, headers: Any = None
) -> Response:
    """Answer with an error."""
    return json_answer(error_content(status, message, field), status, headers)


async def _http_error(_: Request, error: HTTPException) -> Response:
    return error_answer(error.status_code, error.detail, headers=error.headers)


async def _settings_error(_: Request, error: SettingsError) -> Response:
    return error_answer(400, str(error))


async def _validation_error(_: Request, error: ValidationError) -> Response:
    """Name the place of the first error, such as pairs[1][0], but never the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return error_answer(400, message)
    field, *parts = first["loc"]
    place = str(field)
    for part in parts:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part.isidentifier():  # a field, not a type
            place += f".{part}"
    return error_answer(400, f"{place}: {message}", place)


#: Errors of requests -> functions that answer them.
ERROR_HANDLERS: Any = {
    HTTPException: _http_error,
    SettingsError: _settings_error,
    ValidationError: _validation_error,
}
