"""A request's body as JSON, then as what a schema expects."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError

from st_paragram.tools.serving.errors import Refused
from st_paragram.tools.serving.messages import Request
from st_paragram.tools.serving.refusals import reason
from st_paragram.tools.serving.schemas import RequestSchema

_Schema = TypeVar("_Schema", bound=RequestSchema)
_JSON = re.compile(rb"application/(?:[^;\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE)


def read_json(request: Request) -> dict[str, Any]:
    """The body, a JSON object.

    Only with its header: a page that a browser shows could otherwise send requests here without asking.

    Raises:
        Refused: the header is missing, or the body is not a JSON object.
    """
    if not _JSON.fullmatch(request.headers.get(b"content-type", b"").strip()):
        raise Refused(400, "the body is read as JSON only with the header Content-Type: application/json; send it")
    try:
        value = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON, from character {error.pos} on") from None  # it holds the body
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object with the fields of a request")
    return value


def validated(schema: type[_Schema], value: dict[str, Any]) -> _Schema:
    """The request that a JSON object holds.

    Raises:
        Refused: a field is missing or has another type.
    """
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Refused(400, *reason(dict(first), schema, value)) from None  # it holds the body
