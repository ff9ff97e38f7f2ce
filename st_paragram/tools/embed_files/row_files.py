"""The two files that embeddings of one text can be: a `.npy` matrix, or JSON lines. Both can be gone on with."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np

from st_paragram.core.encoding.packing import NumberType, Packed
from st_paragram.tools.embed_files.shards import write_header

_BLOCK = 1 << 20
# As many digits as distinguish all numbers of a type.
_DIGITS = {NumberType.FLOAT32: "%.9g", NumberType.FLOAT16: "%.5g"}


class RowFile(ABC):
    """How embeddings are written to a file, some rows at a time."""

    def __init__(self, dimension: int, dtype: NumberType) -> None:
        """Say what a row is: its components, and their type."""
        self.dimension, self.dtype = dimension, dtype

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What identifies files of this kind, as JSON values by name."""

    @abstractmethod
    def begin(self, file: BinaryIO) -> None:
        """Write what comes before the rows."""

    @abstractmethod
    def whole_rows(self, file: BinaryIO) -> int:
        """Cut a torn row off the end, stay there, and return the number of rows before it."""

    @abstractmethod
    def rows(self, packed: Packed, lines: Sequence[str], first: int) -> Iterable[bytes]:
        """The bytes of some rows: embeddings (n, D), their lines, and the number of the first line, from 1."""

    @abstractmethod
    def finish(self, file: BinaryIO, rows: int) -> None:
        """Complete a file of that many rows."""


class NpyRows(RowFile):
    """A matrix of NumPy; its header says how many rows there are."""

    def identity(self) -> dict[str, Any]:
        """Dimension and type alone: the files of earlier versions can be gone on with."""
        return {"dimension": self.dimension, "dtype": self.dtype.value}

    def begin(self, file: BinaryIO) -> None:
        """Write a header for no row."""
        write_header(file, self.dtype.value, (0, self.dimension))

    def whole_rows(self, file: BinaryIO) -> int:
        """As many as fit into the size of the file."""
        header, row_bytes = BytesIO(), self.dimension * np.dtype(self.dtype.value).itemsize
        self.begin(header)
        size = file.seek(0, 2)
        whole = (size - header.tell()) // row_bytes
        if whole < 0:  # not even the header
            whole = 0
            file.seek(0)
            self.begin(file)
        file.truncate(header.tell() + whole * row_bytes)
        file.seek(0, 2)
        return int(whole)

    def rows(self, packed: Packed, lines: Sequence[str], first: int) -> Iterable[bytes]:
        """The numbers."""
        return [packed.numbers.tobytes()]

    def finish(self, file: BinaryIO, rows: int) -> None:
        """Write the header again."""
        file.seek(0)
        write_header(file, self.dtype.value, (rows, self.dimension))


class JsonRows(RowFile):
    """JSON lines: `{"line": 1, "text": "...", "embedding": [0.25, ...]}`, the text only if it is asked for."""

    def __init__(self, dimension: int, dtype: NumberType, with_text: bool) -> None:
        """As `RowFile`; `with_text`: each object has its line."""
        super().__init__(dimension, dtype)
        self._with_text = with_text
        self._embedding = ", ".join([_DIGITS[dtype]] * dimension)

    def identity(self) -> dict[str, Any]:
        """The kind of file, too."""
        return {"dimension": self.dimension, "dtype": self.dtype.value, "format": "jsonl", "with_text": self._with_text}

    def begin(self, file: BinaryIO) -> None:
        """Nothing comes before the rows."""

    def whole_rows(self, file: BinaryIO) -> int:
        """As many as there are line feeds."""
        file.seek(0)
        rows = end = position = 0
        while block := file.read(_BLOCK):
            if found := block.count(b"\n"):
                rows, end = rows + found, position + block.rfind(b"\n") + 1
            position += len(block)
        file.truncate(end)
        file.seek(end)
        return rows

    def rows(self, packed: Packed, lines: Sequence[str], first: int) -> Iterable[bytes]:
        """One object for each line."""
        for number, (line, row) in enumerate(zip(lines, packed.numbers, strict=True), first):
            text = f', "text": {json.dumps(line, ensure_ascii=False)}' if self._with_text else ""
            yield f'{{"line": {number}{text}, "embedding": [{self._embedding % tuple(row.tolist())}]}}\n'.encode()

    def finish(self, file: BinaryIO, rows: int) -> None:
        """Nothing comes after the rows."""
