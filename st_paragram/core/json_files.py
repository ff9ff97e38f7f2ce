"""Read JSON that may be damaged, or a stranger's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

_Record = TypeVar("_Record")

MOST_BYTES = 1 << 28
MOST_DEPTH = 64  # lists and mappings in each other; nothing that is written here has more than eight


def read_json(path: str | Path, most_bytes: int = MOST_BYTES) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """The value in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: no JSON in UTF-8, larger than `most_bytes`, or nested more than 64 deep; in words that do not name
            the file.
    """
    return parse_json(_read(path, most_bytes))


def read_record(path: str | Path, kind: type[_Record], most_bytes: int = MOST_BYTES) -> _Record:
    """A dataclass from a file that holds its fields, whose types are checked; text is not taken for a number.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON, or a value is missing or of another type; in words that do not name the file.
    """
    import pydantic  # takes too long for who reads no record

    try:
        return pydantic.TypeAdapter(kind).validate_json(_read(path, most_bytes), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def _read(path: str | Path, most_bytes: int) -> bytes:
    if (size := Path(path).stat().st_size) > most_bytes:
        raise ValueError(f"{size:,} bytes, more than {most_bytes:,}")
    return Path(path).read_bytes()


def parse_json(data: bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """The value in UTF-8 text.

    Raises:
        ValueError: see `read_json`.
    """
    try:
        value = json.loads(data.decode("utf-8"))
    except RecursionError:
        value = None
    else:
        if not _deeper(value, MOST_DEPTH):
            return value
    raise ValueError(f"nested more than {MOST_DEPTH} levels deep")


def _deeper(value: object, depth: int) -> bool:
    """Whether lists and mappings are nested deeper than this."""
    level = [value]
    for _ in range(depth + 1):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return False
    return True


def _parts(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
