"""The fields of a sentencepiece model file, and the rounding of scores.

The file is a ModelProto in protocol buffers' wire format (sentencepiece_model.proto). The reader
included in sentencepiece requires a certain version of the protobuf package, so the few fields
needed are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: Fields of a ModelProto: a piece (text, score, type), the settings of the trainer and of the
#: normalizer.
PIECE = 1
TRAINER = 2
NORMALIZER = 3
#: Scores are multiples of this in the vocabularies trained here.
SCORE_STEP = 2.0**-10


def fields(
    message: bytes, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, int, int]]:
    """Yield the fields of message[start:end]: number, and begin and end of the value.

    A field starts with a varint, number * 8 + wire type: 0 a varint, 1 eight bytes, 2 a varint
    length and as many bytes, 5 four bytes.
    """
    position = start
    end = len(message) if end is None else end

    def varint() -> int:
        """Read seven bits per byte, lowest first; the top bit marks that more bytes follow."""
        nonlocal position
        result = shift = 0
        while True:
            byte = message[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    while position < end:
        number, wire_type = divmod(varint(), 8)
        begin = position
        if wire_type == 0:
            varint()
        else:
            length = {1: 8, 5: 4}.get(wire_type) or varint()
            begin = position
            position += length
        yield number, begin, position


def round_scores(model: bytes) -> bytes:
    """Round the scores of all pieces to multiples of `SCORE_STEP`; other bytes stay unchanged."""
    result = bytearray(model)
    for message, start, end in fields(model):
        if message != PIECE:
            continue
        for number, begin, _ in fields(model, start, end):
            if number == 2:
                (score,) = struct.unpack_from("<f", model, begin)
                struct.pack_into("<f", result, begin, round(score / SCORE_STEP) * SCORE_STEP)
    return bytes(result)
