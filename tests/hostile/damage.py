"""Damage to bytes and to JSON values, drawn at random; what is drawn depends on the generator alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: Texts that stand in an edited value for what `json.dumps` cannot write; `json_bytes` puts the real thing there.
TOO_DEEP, TOO_LONG = "\0too deep", "\0too long"
_REAL = {TOO_DEEP: "[" * 100_000 + "]" * 100_000, TOO_LONG: "9" * 5_000}

_STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**32, -(2**31), 2**63, -(2**63) - 1, 2**64, 10**300),
    *(0.5, -0.0, 1e-300, 1e308, float("nan"), float("inf"), -float("inf")),
    *("", "0", "x", "../../x", "/dev/null", "a\nb", "\x1b[31m", "\0", "\ud800", "é" * 3000),
    *([], {}, [[]], [None], {"": None}, [1, "x"]),
    *(TOO_DEEP, TOO_LONG),
)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Other bytes: bits flipped, runs overwritten, put in or taken out, blocks zeroed or swapped, the end cut off."""
    content = bytearray(data)
    while content == data:
        for _ in range(int(rng.geometric(0.7))):
            _KINDS[rng.integers(len(_KINDS))](content, rng)
    return bytes(content)


def edited_json(value: Any, rng: np.random.Generator) -> Any:
    """A JSON value in which something is replaced, deleted, renamed, retyped, nested deeply or made huge.

    Write it with `json_bytes`: some edits are beyond `json.dumps`.
    """
    value = copy.deepcopy(value)
    for _ in range(int(rng.geometric(0.7))):
        value = _edited(value, rng)
    return value


def json_bytes(value: Any) -> bytes:
    """A value of `edited_json` as the bytes of a file."""
    text = json.dumps(value)
    for name, real in _REAL.items():
        text = text.replace(json.dumps(name), real)
    return text.encode()


def _span(content: bytearray, rng: np.random.Generator) -> slice:
    """A run of bytes, short more often than long."""
    begin = int(rng.integers(len(content) + 1))
    return slice(begin, begin + int(2 ** rng.uniform(0, 10)))


def _flip_a_bit(content: bytearray, rng: np.random.Generator) -> None:
    if content:
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)


def _overwrite(content: bytearray, rng: np.random.Generator) -> None:
    span = _span(content, rng)
    content[span] = rng.bytes(len(content[span]))


def _fill(content: bytearray, rng: np.random.Generator) -> None:
    span = _span(content, rng)
    content[span] = bytes([rng.choice([0, 0, 1, 127, 128, 255])]) * len(content[span])


def _insert(content: bytearray, rng: np.random.Generator) -> None:
    span = _span(content, rng)
    content[span.start : span.start] = rng.bytes(span.stop - span.start)


def _take_out(content: bytearray, rng: np.random.Generator) -> None:
    del content[_span(content, rng)]


def _repeat(content: bytearray, rng: np.random.Generator) -> None:
    span = _span(content, rng)
    content[span.stop : span.stop] = content[span]


def _swap(content: bytearray, rng: np.random.Generator) -> None:
    first, second = sorted((_span(content, rng), _span(content, rng)), key=lambda span: span.start)
    length = min(second.start - first.start, len(content) - second.start, second.stop - second.start)
    one, other = (slice(span.start, span.start + length) for span in (first, second))
    content[one], content[other] = content[other], content[one]


def _cut(content: bytearray, rng: np.random.Generator) -> None:
    del content[rng.integers(len(content) + 1) :]


_KINDS: tuple[Callable[[bytearray, np.random.Generator], None], ...] = (
    *(_flip_a_bit, _flip_a_bit, _flip_a_bit, _overwrite, _overwrite, _fill, _fill),
    *(_insert, _take_out, _repeat, _swap, _cut),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places of a value, in its order: a list and an index, or a dictionary and a key."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from _places(inner)


def _edited(value: Any, rng: np.random.Generator) -> Any:
    places = list(_places(value))
    if not places or rng.random() < 0.03:
        return _other(value, rng)
    container, key = places[rng.integers(len(places))]
    kind = rng.random()
    if kind < 0.15:
        del container[key]
    elif kind < 0.25:
        inner = copy.deepcopy(container[key])
        if isinstance(container, dict):
            container[f"{key}{rng.choice(['', ' ', '_', '2'])}"] = inner
        else:
            container.insert(key, inner)
    elif kind < 0.35 and isinstance(container, dict):
        container[str(rng.choice(["", "x", key.upper(), f"{key}_"]))] = container.pop(key)
    else:
        container[key] = _other(container[key], rng)
    return value


def _other(value: Any, rng: np.random.Generator) -> Any:
    """Another value: a little off, of another type, nested, or strange."""
    kind = rng.random()
    if kind < 0.3 and isinstance(value, int | float):
        return [value + 1, value - 1, -value, value * 1000, value // 2, str(value), bool(value)][rng.integers(7)]
    if kind < 0.3 and isinstance(value, str):
        return [value + "x", value[:-1], value.upper(), value * 100, [value], f" {value}", len(value)][rng.integers(7)]
    if kind < 0.4:
        return [[value], {"x": value}, _nested(value, int(rng.integers(2, 300)))][rng.integers(3)]
    return copy.deepcopy(_STRANGE[rng.integers(len(_STRANGE))])


def _nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value
