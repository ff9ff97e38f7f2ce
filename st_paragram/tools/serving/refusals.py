"""What is wrong with the fields of a request, in plain words; never with a text of the request in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from st_paragram.tools.serving.schemas import RequestSchema

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,39}")  # what may be named: anything else might be a text
_NAMED = 5
_OPENAI = {"user"}  # fields of OpenAI's API that have no meaning here: they are not what is wrong

#: Fields that have several forms; pydantic says what is wrong with each of them.
_FORMS = {
    "input": "must be a text, a list of texts, or token numbers",
    "inputs": "must be a text or a list of texts",
    "documents": 'must be a list of texts, or of objects {"text": ...}',
}

#: By the kinds of errors that pydantic tells apart, from the values that it gives.
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


def reason(error: dict[str, Any], schema: type[RequestSchema], value: dict[str, Any]) -> tuple[str, str | None]:
    """The message, and the field that it is about.

    Args:
        error: the first that pydantic found.
        schema: what the request should be.
        value: what it is.
    """
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
