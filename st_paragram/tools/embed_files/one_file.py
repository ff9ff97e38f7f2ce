"""One growing file: a `.npy` matrix or JSON lines. A run that was interrupted goes on behind the last whole row."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from numpy.lib import format as npy

from st_paragram.core.text.streams import stream_name
from st_paragram.core.text.tables import read_texts
from st_paragram.errors import ParagramError
from st_paragram.tools.embed_files.rows import RowEncoder, Rows, Text

logger = logging.getLogger(__name__)

_BLOCK = 1 << 20
_DIGITS = {"float32": "%.9g", "float16": "%.5g"}  # as many as distinguish all numbers of a type


class NpyRows:
    """A matrix of NumPy."""

    def __init__(self, encode: RowEncoder) -> None:
        """The dimension and the type are those of the encoder."""
        self._dimension, self._dtype = encode.dimension, np.dtype(encode.settings.dtype)

    def begin(self, file: IO[bytes], rows: int = 0) -> None:
        """Write what comes before so many rows; its size is the same for any number."""
        shape = {"descr": self._dtype.str, "fortran_order": False, "shape": (rows, self._dimension)}
        npy.write_array_header_1_0(file, shape)  # which leaves room for the digits of larger numbers

    def whole_rows(self, file: BinaryIO) -> int:
        """Cut a torn row off the end, stay there, and return the number of rows before it."""
        self.begin(header := BytesIO())
        begin, row = header.tell(), self._dimension * self._dtype.itemsize
        rows = max(0, file.seek(0, 2) - begin) // row
        file.seek(0)
        self.begin(file)
        file.truncate(begin + rows * row)
        file.seek(0, 2)
        return int(rows)

    def write(self, file: IO[bytes], rows: Rows, lines: Sequence[str], first: int) -> None:
        """Write the rows of lines."""
        file.write(rows.data)


class JsonRows:
    """JSON lines: `{"line": 1, "text": "...", "embedding": [0.25, ...]}`."""

    def __init__(self, encode: RowEncoder) -> None:
        """The dimension and the type are those of the encoder."""
        self._numbers = ", ".join([_DIGITS[encode.settings.dtype]] * encode.dimension)

    def begin(self, file: IO[bytes], rows: int = 0) -> None:
        """Nothing comes before the rows."""

    def whole_rows(self, file: BinaryIO) -> int:
        """Cut a torn row off the end, stay there, and return the number of rows before it."""
        file.seek(0)
        rows = end = position = 0
        while block := file.read(_BLOCK):
            if found := block.count(b"\n"):
                rows, end = rows + found, position + block.rfind(b"\n") + 1
            position += len(block)
        file.truncate(end)
        file.seek(end)
        return rows

    def write(self, file: IO[bytes], rows: Rows, lines: Sequence[str], first: int) -> None:
        """Write the rows of lines, which are counted from `first`."""
        for number, (line, row) in enumerate(zip(lines, rows.tolist(), strict=True), first):
            text = json.dumps(line, ensure_ascii=False)
            file.write(f'{{"line": {number}, "text": {text}, "embedding": [{self._numbers % tuple(row)}]}}\n'.encode())


def embed_to_file(texts: Sequence[Text], output: Path, encode: RowEncoder, kind: type[NpyRows | JsonRows]) -> None:
    """Append rows to `<output>.part`; `<output>.part.json` identifies its model, texts and settings."""
    part, made_of = output.with_name(f"{output.name}.part"), output.with_name(f"{output.name}.part.json")
    rows, identity, done = kind(encode), encode.identity(texts, output.suffix), 0
    resumes = part.exists() and made_of.exists() and made_of.read_text(encoding="utf-8") == identity
    try:
        with part.open("r+b" if resumes else "w+b") as file:
            if resumes:
                logger.info("%s: resumed where an earlier run stopped", part)
                done = rows.whole_rows(file)
            else:  # the file is empty before anything says what is in it
                made_of.write_text(identity, encoding="utf-8")
                rows.begin(file)
            embed_to_stream(texts, file, encode, rows, done)
            file.seek(0)
            rows.begin(file, encode.report.lines)
    except ParagramError:  # text, model or settings must change, and then these rows are of no use
        part.unlink()
        made_of.unlink()
        raise
    part.replace(output)
    made_of.unlink()


def embed_to_stream(
    texts: Sequence[Text], file: IO[bytes], encode: RowEncoder, rows: NpyRows | JsonRows, done: int = 0
) -> None:
    """Write the rows of all lines behind the first `done`."""
    report = encode.report
    for text in texts:
        lines, before = read_texts(text.path, text.column), report.lines
        report.count(islice(lines, done - before if done > before else 0), resumed=True)
        for batch, embeddings in encode.embedded(lines, stream_name(text.path), report.lines - before + 1):
            rows.write(file, embeddings, batch, report.lines - len(batch) + 1)
    encode.check_not_empty(texts)
