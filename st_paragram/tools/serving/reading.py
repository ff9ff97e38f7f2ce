"""A request's body as JSON, then as what a schema expects; what is wrong with it, in plain words.

No message holds a text of the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from st_paragram.tools.serving.messages import Refused, Request

Number = Annotated[StrictInt, Field(ge=1, le=2**31 - 1)]
# A list ends at its first error: millions of them would fill the memory.
FAIL_FAST = Field(fail_fast=True)
Texts = Annotated[list[StrictStr], FAIL_FAST]


class RequestSchema(BaseModel):
    """What all requests have in common. Unknown fields are ignored: clients send several that have no meaning here.

    Attributes:
        texts_field: the field that holds the texts; it distinguishes the forms of one address.
    """

    model_config = ConfigDict(extra="ignore", protected_namespaces=())
    texts_field: ClassVar[str]


_Schema = TypeVar("_Schema", bound=RequestSchema)
_JSON = re.compile(rb"application/(?:[^;\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,39}")  # what may be named: anything else might be a text
_NAMED = 5
_OPENAI = {"user"}  # fields of OpenAI's API that have no meaning here: they are not what is wrong

#: Fields that have several forms; pydantic says what is wrong with each of them.
_FORMS = {
    "input": "must be a text, a list of texts, or token ids",
    "inputs": "must be a text or a list of texts",
    "where": "must be a filter such as lang=es, a list of at most 32 of them, or an object of fields and their values",
    "metadata": "must be an object of fields, or a list of them; values are text, numbers, true or false",
    "documents": 'must be a list of texts, or of objects {"text": ...}',
}

#: By pydantic's kinds of errors, from the values that it gives.
_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "string_type": lambda _: "must be a text",
    "list_type": lambda _: "must be a list",
    "tuple_type": lambda _: "must be a list of 2 texts",
    "int_type": lambda _: "must be a whole number",
    "bool_type": lambda _: "must be true or false",
    "float_type": lambda _: "must be a number",
    "float_parsing": lambda _: "must be a number",
    "literal_error": lambda values: f"must be {values['expected']}",
    "enum": lambda values: f"must be {values['expected']}",
    "greater_than_equal": lambda values: f"must be at least {values['ge']:.10g}",
    "less_than_equal": lambda values: f"must be at most {values['le']:.10g}",
}


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
        raise Refused(
            400, f"the body is not valid JSON (error at character {error.pos})"
        ) from None  # it holds the body
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
        raise Refused(400, *_reason(dict(first), schema, value)) from None  # it holds the body


def _reason(error: dict[str, Any], schema: type[RequestSchema], value: dict[str, Any]) -> tuple[str, str | None]:
    """The message, and the field that it is about; `error` is the first that pydantic found."""
    places = error["loc"]
    if places[0] in _FORMS and error["type"] != "missing":
        return f"{places[0]} {_FORMS[places[0]]}", places[0]
    if error["type"] == "missing" and isinstance(places[-1], int):
        return _wrong_number(_shown(places[:-1]), places[-1]), _shown(places[:-1])
    field = _shown(places)
    if error["type"] == "too_long":
        return _wrong_number(field, error["ctx"]["actual_length"]), field
    if error["type"] == "missing":
        return f"{field} is missing{_unknown(schema, value)}", field
    words = _WORDS.get(error["type"])
    return f"{field} {words(error.get('ctx', {}))}" if words else f"{field}: {error['msg'][:200]}", field


def _wrong_number(pair: str, texts: int) -> str:
    return f"{pair} has {texts} text{'' if texts == 1 else 's'}, 2 are needed"


def _shown(places: Sequence[int | str]) -> str:
    """A place in the body, such as `pairs[1][0]`; the names in it are those of our own fields."""
    return "".join(f"[{place}]" if isinstance(place, int) else f".{place}" for place in places).removeprefix(".")


def _unknown(schema: type[RequestSchema], value: dict[str, Any]) -> str:
    """The unknown fields: one of them may be the missing one, misspelt."""
    unknown = [name for name in value if name not in schema.model_fields.keys() | _OPENAI and _NAME.fullmatch(name)]
    if not unknown:
        return ""
    return f"; unknown field{'' if len(unknown) == 1 else 's'}: {', '.join(unknown[:_NAMED])}"
