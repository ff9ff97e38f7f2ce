"""A vocabulary that is a list of strings in the order of their ids, as bytes: JSON in UTF-8."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from st_paragram.errors import SettingsError, one_line, short


def write_strings(strings: Sequence[str]) -> bytes:
    """The bytes of a list."""
    return json.dumps(list(strings), ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def read_strings(content: bytes, what: str) -> list[str]:
    """The list that `write_strings` wrote.

    Args:
        content: its bytes.
        what: the strings are, for the message: "words".

    Raises:
        SettingsError: no JSON list, an empty one, or one with something else than distinct, non-empty strings of text.
    """
    try:
        strings = json.loads(content)
        if not isinstance(strings, list):
            raise ValueError(f"{short(strings)} is not a list")
        _check(strings)
    except ValueError as error:
        raise SettingsError(f"not a list of {what} ({len(content):,} bytes): {one_line(error)}") from error
    return strings


def _check(strings: list[Any]) -> None:
    if not strings:
        raise ValueError("an empty list")
    if others := [each for each in strings if not isinstance(each, str)]:
        raise ValueError(f"{short(others[0])} is not a string")
    "".join(strings).encode("utf-8")  # a lone surrogate, which JSON can hold, raises a ValueError
    if len(set(strings)) < len(strings):
        raise ValueError(f"{short(Counter(strings).most_common(1)[0][0])} is there more than once")
    if "" in strings:
        raise ValueError("an empty string")


def checked_switch(name: str, value: object) -> bool:
    """A value that must be true or false.

    Raises:
        SettingsError: it is neither.
    """
    if not isinstance(value, bool):
        raise SettingsError(f"{name} is {short(value)}; true or false is expected")
    return value
