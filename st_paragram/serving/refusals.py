"""What is wrong with the body of a request, in plain words; never with a text of the request in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from st_paragram.serving.schemas import REQUESTS

_JSON = re.compile(r"application/(?:[^;\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,39}")  # what may be named: anything else might be a text
_NAMED = 5
_OPENAI = {"user"}  # fields of OpenAI's API that have no meaning here: they are not what is wrong
_NO_HEADER = "the body is read as JSON only with the header Content-Type: application/json; send this header"
_NO_OBJECT = "the body must be a JSON object with the fields of a request"

#: By the kinds of errors that pydantic tells apart, from the values that it gives.
_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "string_type": lambda _: "must be a text",
    "list_type": lambda _: "must be a list",
    "tuple_type": lambda _: "must be a list of 2 texts",
    "int_type": lambda _: "must be a whole number",
    "float_type": lambda _: "must be a number",
    "float_parsing": lambda _: "must be a number",
    "literal_error": lambda values: f"must be {values['expected']}",
    "enum": lambda values: f"must be {values['expected']}",
    "greater_than_equal": lambda values: f"must be at least {values['ge']:.10g}",
    "less_than_equal": lambda values: f"must be at most {values['le']:.10g}",
}


def reason(error: dict[str, Any], path: str, body: Any, content_type: str) -> tuple[str, str | None]:  # noqa: ANN401
    """The message, and the field that it is about if there is one.

    Args:
        error: the first that pydantic found.
        path: that was asked.
        body: as far as it was read, a JSON value or bytes.
        content_type: the header of this name.
    """
    if error["type"] == "json_invalid":
        return f"the body is no JSON, from character {error['loc'][-1]} on", None
    places = error["loc"][1:]
    if not places:
        return _NO_OBJECT if _JSON.fullmatch(content_type.strip()) else _NO_HEADER, None
    if places[0] == "input" and len(places) > 1:  # pydantic tells what is wrong with each of the two forms
        return "input must be a text or a list of texts", "input"
    if error["type"] == "missing" and isinstance(places[-1], int):
        return _wrong_number(_shown(places[:-1]), places[-1]), _shown(places[:-1])
    field = _shown(places)
    if error["type"] == "too_long":
        return _wrong_number(field, error["ctx"]["actual_length"]), field
    if error["type"] == "missing":
        return f"{field} is missing{_unknown(path, body)}", field
    words = _WORDS.get(error["type"])
    return f"{field} {words(error.get('ctx', {}))}" if words else f"{field}: {error['msg'][:200]}", field


def _wrong_number(pair: str, texts: int) -> str:
    return f"{pair} has {texts} text{'' if texts == 1 else 's'}, 2 are needed"


def _shown(places: Sequence[int | str]) -> str:
    """A place in the body, such as `pairs[1][0]`; the names in it are those of our own fields."""
    return "".join(f"[{place}]" if isinstance(place, int) else f".{place}" for place in places).removeprefix(".")


def _unknown(path: str, body: Any) -> str:  # noqa: ANN401
    """The fields that nothing is known of: one of them may be the missing one, misspelt."""
    schema = REQUESTS.get(path)
    if schema is None or not isinstance(body, dict):
        return ""
    unknown = [name for name in body if name not in schema.model_fields.keys() | _OPENAI and _NAME.fullmatch(name)]
    if not unknown:
        return ""
    return f"; unknown field{'' if len(unknown) == 1 else 's'}: {', '.join(unknown[:_NAMED])}"
