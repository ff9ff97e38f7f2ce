"""Read what a sentencepiece model file says, as far as it decides about pieces, and change its scores.

The file is a ModelProto in protocol buffers' wire format (sentencepiece_model.proto). The generated reader that
sentencepiece ships needs the protobuf package, in a version not older than its generator; the few fields needed here
are read directly.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from st_paragram.errors import ModelDirectoryError

# The consonants that begin a Hangul syllable.
LEADING_JAMO = [chr(code) for code in range(0x1100, 0x1113)]

# What sentencepiece writes for a space.
META_SYMBOL = "\u2581"

_FLOAT = struct.Struct("<f")


class PieceKind(IntEnum):
    """Types of pieces in sentencepiece's ModelProto."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass
class Piece:
    """A piece; scores are log-probabilities."""

    text: str = ""
    score: float = 0.0
    kind: int = PieceKind.NORMAL


@dataclass
class SentencePieceModel:
    """What a ModelProto says, as far as it decides about pieces; the values are the format's defaults."""

    pieces: list[Piece] = field(default_factory=list)
    model_type: int = 1
    whitespace_as_suffix: bool = False
    byte_fallback: bool = False
    charsmap: bytes = b""
    dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True


def parse_model(model_proto: bytes) -> SentencePieceModel:
    """Read a ModelProto: fields 1 (pieces), 2 (trainer's settings) and 3 (normalizer's settings).

    Raises:
        ModelDirectoryError: the bytes are not such a message.
    """
    model = SentencePieceModel()
    try:
        for number, value in _fields(model_proto):
            if number == 1:
                model.pieces.append(_parse_piece(value))
            elif number == 2:
                names = {3: "model_type", 24: "whitespace_as_suffix", 35: "byte_fallback"}
                _parse_settings(model, value, names)
            elif number == 3:
                names = {3: "dummy_prefix", 4: "remove_extra_whitespaces", 5: "escape_whitespaces"}
                _parse_settings(model, value, {2: "charsmap", **names})
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise _unreadable(model_proto, error) from error
    return model


def round_scores(model_proto: bytes, step: float) -> bytes:
    """Round the scores of all pieces to multiples of `step`; every other byte of the ModelProto stays as it is.

    Raises:
        ModelDirectoryError: the bytes are not such a message.
    """
    result = bytearray(model_proto)
    try:
        for number, start, end in _spans(model_proto, 0, len(model_proto)):
            if number != 1:
                continue
            for inner, first, after in _spans(model_proto, start, end):
                if inner == 2:
                    (score,) = _FLOAT.unpack(model_proto[first:after])
                    _FLOAT.pack_into(result, first, round(score / step) * step)
    except (ValueError, IndexError, OverflowError, struct.error) as error:
        raise _unreadable(model_proto, error) from error
    return bytes(result)


def _unreadable(model_proto: bytes, error: Exception) -> ModelDirectoryError:
    return ModelDirectoryError(
        f"the sentencepiece model ({len(model_proto)} bytes) cannot be read: {error}; copy the file again"
    )


def _parse_piece(message: bytes) -> Piece:
    size = len(message) - 7
    if size >= 0 and message[0] == 0x0A and message[1] == size < 0x80 and message[size + 2] == 0x15:
        # Nearly every piece: a short text, then a score.
        return Piece(message[2 : size + 2].decode(), *_FLOAT.unpack_from(message, size + 3))
    piece = Piece()
    for number, value in _fields(message):
        if number == 1:
            piece.text = value.decode()
        elif number == 2:
            (piece.score,) = _FLOAT.unpack(value)
        elif number == 3:
            piece.kind = value
    return piece


def _parse_settings(model: SentencePieceModel, message: bytes, names: dict[int, str]) -> None:
    for number, value in _fields(message):
        if number in names:
            kind = type(getattr(model, names[number]))
            if isinstance(value, bytes) != (kind is bytes):
                raise ValueError(f"the setting {names[number]} has the wrong type")
            setattr(model, names[number], kind(value))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number and value; the value is an int (wire type 0) or bytes (1, 2, 5)."""
    for number, start, end in _spans(message, 0, len(message)):
        yield number, (end if start < 0 else message[start:end])


def _spans(message: bytes, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of message[position:end]: number, where the value begins and ends; for an integer -1 and itself.

    A field starts with a varint, number * 8 + wire type: 0 a varint, 1 eight bytes, 2 a varint length and as
    many bytes, 5 four bytes. A varint has seven bits a byte, lowest first; the top bit says that more follow.
    """

    def varint() -> int:
        nonlocal position
        result = shift = 0
        while True:
            byte = message[position]
            position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result
            if shift > 63:
                raise ValueError(f"a number of more than ten bytes ends at byte {position}")

    while position < end:
        key = message[position]
        if key < 0x80 and key & 7 == 2 and message[position + 1] < 0x80:  # the same as below, for nearly every field
            number, wire_type, length = key >> 3, 2, message[position + 1]
            position += 2
        else:
            number, wire_type = divmod(varint(), 8)
            if wire_type == 0:
                yield number, -1, varint()
                continue
            length = {1: 8, 5: 4}.get(wire_type) or (varint() if wire_type == 2 else -1)
        if length < 0 or position + length > end:
            raise ValueError(f"field {number} (wire type {wire_type}) is damaged at byte {position}")
        yield number, position, position + length
        position += length


# The table of rules: a double-array trie (darts-clone) over UTF-8 bytes


def read_rules(charsmap: bytes) -> dict[str, str]:
    """Read the rules out of a compiled table.

    Layout, little-endian: size of the trie in bytes (uint32), its units (uint32 each), the replacements, each
    ended by a zero byte. A unit at index i holds a byte (bits 0-7), whether a key ends here (8), and the
    offset to its children's base (10-30, times 256 if bit 9 is set): the child for byte b is the unit at
    i ^ offset ^ b if it holds b; the end of a key is the child for byte 0, whose unit (bit 31 set) is a
    position among the replacements.

    Nine of ten rules compose Hangul syllables; only those that begin with the first consonant are read.
    """
    size = int.from_bytes(charsmap[:4], "little")
    try:
        if size < 1024:  # no more than the root's children
            raise ValueError(f"a trie of {size} bytes")
        units = struct.unpack_from(f"<{size // 4}I", charsmap, 4)
        return dict(_walk(units, charsmap[4 + size :]))
    except (struct.error, IndexError, ValueError) as error:
        raise ModelDirectoryError(
            f"the sentencepiece model's normalization table ({len(charsmap)} bytes) is damaged: {error}; "
            "copy the file again"
        ) from error


def _walk(units: tuple[int, ...], replacements: bytes) -> Iterator[tuple[str, str]]:
    """The keys of the trie with their replacements, depth first."""
    children: dict[int, list[int]] = defaultdict(list)  # base -> indices of the units there
    for index, unit in enumerate(units):
        if not unit >> 31 and unit & 0xFF:
            children[index ^ unit & 0xFF].append(index)

    first, *others = (jamo.encode() for jamo in LEADING_JAMO)
    stack = [(0, b"")]
    while stack:
        index, key = stack.pop()
        base = index ^ (units[index] >> 10 << (units[index] >> 6 & 8))
        value = None
        if key and units[index] >> 8 & 1:
            start = units[base] & 0x7FFFFFFF
            value = replacements[start : replacements.index(b"\0", start)]
            yield key.decode(), value.decode()
        if key not in others and value not in (first, *others):
            stack += [(child, key + bytes([units[child] & 0xFF])) for child in children[base]]
