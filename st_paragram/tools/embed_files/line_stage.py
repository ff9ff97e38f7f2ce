"""First stage: how many lines each text has, and where they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO, ClassVar

from tqdm import tqdm

from st_paragram.core.files import STDIN, atomic, content_digest, digest, file_digest, is_pipe
from st_paragram.core.text.streams import ByteStream, read_blocks, stream_name
from st_paragram.core.text.tables import open_columns
from st_paragram.tools.embed_files.spans import Span, changed, find_spans, read_span
from st_paragram.tools.stages.metadata import read_metadata, write_metadata
from st_paragram.tools.stages.stage import Stage

VERSION = 1  # of the results: count it up when they change


@dataclass(frozen=True)
class Scanned:
    """What is known of a text.

    Attributes:
        sha256: Of the file, in hexadecimal digits; of its lines for standard input and other pipes.
        copied: Whether its spans were copied, since they cannot be read from the middle of a packed file or a pipe.
        spans: Of its lines.
    """

    sha256: str
    copied: bool
    spans: tuple[Span, ...]

    @property
    def lines(self) -> int:
        """Number of lines."""
        return sum(span.lines for span in self.spans)


@dataclass(frozen=True)
class LineStage(Stage):
    """A task passes through one text.

    A plain text stays where it is, and later tasks read their own lines of it. Of a packed one, a pipe or a column of a
    table the lines are written to `00000.txt`, ..., one file for each span.

    Attributes:
        texts: Files, or `-`.
        identities: Of each text what `files.file_digest` gives.
        shard_lines: Lines of a span.
        columns: Of each text its column, if it is a table; None for plain text.
    """

    name: ClassVar[str] = "lines"
    texts: tuple[str, ...]
    identities: tuple[str, ...]
    shard_lines: int
    columns: tuple[str | None, ...]

    def digests(self) -> list[str]:
        """One for each text."""
        texts = zip(self.identities, self.columns, strict=True)
        return [digest(VERSION, each, self.shard_lines, *([column] if column else [])) for each, column in texts]

    def results(self) -> list[Path]:
        """One for each text; only its metadata is there, next to the copies."""
        return [self.root / self.name / each / "text" for each in self.digests()]

    def local(self, task: int) -> bool:
        """Pipes can be read by the process that was started with them alone."""
        return is_pipe(self.texts[task])

    def scanned(self) -> list[Scanned]:
        """What is known of each text, after its task was done."""
        return [_scanned(path) for path in self.results()]

    def read(self, text: int, number: int) -> Iterator[str]:
        """Yield the lines of a span.

        Raises:
            TextError: The text is not what it was when it was scanned.
        """
        path, result = self.texts[text], self.results()[text]
        scanned = _scanned(result)
        name, span = stream_name(path), scanned.spans[number]
        if scanned.copied:
            yield from read_span(_copy(result, number), span, name)
            return
        yield from read_span(Path(path), span, name)
        if file_digest(path) != self.identities[text]:
            raise changed(name)

    def run(self, task: int) -> None:
        """Pass through a text.

        Raises:
            TextError: It cannot be read, is not UTF-8, or changed meanwhile.
        """
        path, result, column = self.texts[task], self.results()[task], self.columns[task]
        pipe, name = is_pipe(path), stream_name(path)
        with ExitStack() as stack:
            stream = open_columns(path, [column] if column else [], stack)
            plain = isinstance(stream, BufferedReader) and not pipe
            hashed = stack.enter_context(_HashedStream(stream, name))

            def copy(number: int) -> AbstractContextManager[IO[bytes] | None]:
                return nullcontext() if plain else atomic(_copy(result, number))

            spans = list(find_spans(name, read_blocks(name, hashed), self.shard_lines, copy))
        sha256 = hashed.sha256 if plain or pipe else content_digest(Path(path))
        if not pipe and file_digest(path) != self.identities[task]:
            raise changed(name)
        write_metadata(result, asdict(Scanned(sha256, not plain, tuple(spans))))


@cache  # small, and never of another content under the same digest
def _scanned(result: Path) -> Scanned:
    metadata = read_metadata(result)
    return Scanned(metadata["sha256"], metadata["copied"], tuple(Span(**span) for span in metadata["spans"]))


def _copy(result: Path, number: int) -> Path:
    return result.with_name(f"{number:05d}.txt")


class _HashedStream:
    """A stream whose bytes are hashed and counted on a bar as they are read."""

    def __init__(self, stream: ByteStream, name: str) -> None:
        self._stream, self._hash = stream, hashlib.sha256()
        title = name if name == stream_name(STDIN) else Path(name).name
        self._bar = tqdm(desc=f"reading {title}", unit="B", unit_scale=True, disable=None, leave=False)

    def __enter__(self) -> _HashedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self._hash.update(data)
        self._bar.update(len(data))
        return data
