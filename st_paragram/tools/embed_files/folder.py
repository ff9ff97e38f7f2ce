"""Shards, each written whole: a folder of matrices with `embeddings.json`, or one Parquet table that they become.

A run works in `.<output>.work`. It keeps the shards that an earlier run has finished there, if these were made by the
same model from the same texts with the same settings.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from st_paragram.core.extras import require
from st_paragram.core.files import atomic, atomic_folder, content_digest, remove_unfinished, write_json, write_text
from st_paragram.core.text.streams import stream_name
from st_paragram.core.text.tables import read_texts
from st_paragram.errors import ParagramError
from st_paragram.tools.embed_files.one_file import NpyRows
from st_paragram.tools.embed_files.reader import FORMAT_VERSION, MANIFEST, EmbeddedText, Manifest, ModelName, Shard
from st_paragram.tools.embed_files.rows import RowEncoder, Rows, Text

logger = logging.getLogger(__name__)

_IDENTITY = "identity.json"

_Batches = Iterator[tuple[list[str], Rows]]


@dataclass
class _Work:
    """The folder to work in, its shards with text, first line and number of rows, and what was read of each text."""

    folder: Path
    shards: dict[Path, tuple[int, int, int]] = field(default_factory=dict)
    texts: list[EmbeddedText] = field(default_factory=list)


def embed_to_folder(texts: Sequence[Text], output: Path, encode: RowEncoder, model: str | None) -> None:
    """Make a folder of `shard-00000.npy`, ... and `embeddings.json`; `model` is what the model is called."""
    with _shards(texts, output, encode, ".npy", _write_npy) as work:
        shards = tuple(Shard(path.name, *place, content_digest(path)) for path, place in work.shards.items())
        settings, made_by = encode.settings, ModelName(model, encode.fingerprint)
        kinds = (encode.report.lines, encode.dimension, settings.dtype, settings.normalize, made_by)
        write_json(work.folder / MANIFEST, asdict(Manifest(FORMAT_VERSION, *kinds, tuple(work.texts), shards)))
        with atomic_folder(output) as folder:
            work.folder.rename(folder)
            (folder / _IDENTITY).unlink()
    encode.report.files = len(shards)


def embed_to_parquet(texts: Sequence[Text], output: Path, encode: RowEncoder) -> None:
    """Make a Parquet table with the columns `text` and `embedding`, a list of D numbers."""
    with _shards(texts, output, encode, ".arrow", _write_arrow) as work:
        table = ParquetTable(encode)
        with atomic(output) as file, table.writer(file) as writer:
            for path in work.shards:
                with table.arrow.memory_map(str(path)) as source, table.arrow.ipc.open_file(source) as shard:
                    for number in range(shard.num_record_batches):
                        writer.write_batch(shard.get_batch(number))
        shutil.rmtree(work.folder)


@contextmanager
def _shards(
    texts: Sequence[Text],
    output: Path,
    encode: RowEncoder,
    suffix: str,
    write: Callable[[IO[bytes], RowEncoder, _Batches], None],
) -> Iterator[_Work]:
    """Make the shards that are not there; a shard has lines of one text."""
    work, report = _Work(output.with_name(f".{output.name}.work")), encode.report
    _begin(work.folder, encode.identity(texts, suffix))
    try:
        for number, text in enumerate(texts):
            lines, before, blank = read_texts(text.path, text.column), report.lines, report.blank
            for line in lines:
                path, start = work.folder / f"shard-{len(work.shards):05d}{suffix}", report.lines
                part = chain([line], islice(lines, encode.settings.shard_lines - 1))
                first = start - before + 1
                if path.exists():
                    report.count(part, resumed=True)
                else:
                    with atomic(path) as file:
                        write(file, encode, encode.embedded(part, stream_name(text.path), first))
                work.shards[path] = (number, first, report.lines - start)
            work.texts.append(EmbeddedText(text.path, report.lines - before, report.blank - blank))
        encode.check_not_empty(texts)
        yield work
    except ParagramError:  # text, model or settings must change, and then these shards are of no use
        shutil.rmtree(work.folder)
        raise


def _begin(work: Path, identity: str) -> None:
    """Leave in the folder what an earlier run has made of the same, and nothing else."""
    made_of = work / _IDENTITY
    if made_of.exists() and made_of.read_text(encoding="utf-8") == identity:
        remove_unfinished(work)
        logger.info("%s: finished shards of an earlier run are used", work)
        return
    shutil.rmtree(work, ignore_errors=True)
    write_text(made_of, identity)


def _write_npy(file: IO[bytes], encode: RowEncoder, batches: _Batches) -> None:
    matrix, rows = NpyRows(encode), 0
    matrix.begin(file)
    for lines, embeddings in batches:
        matrix.write(file, embeddings, lines, rows + 1)
        rows += len(lines)
    file.seek(0)
    matrix.begin(file, rows)


def _write_arrow(file: IO[bytes], encode: RowEncoder, batches: _Batches) -> None:
    table = ParquetTable(encode)
    with table.arrow.ipc.new_file(file, table.schema) as writer:
        for lines, embeddings in batches:
            writer.write_batch(table.of(embeddings, lines))


class ParquetTable:
    """Tables with columns of text, and with embeddings as lists of D numbers."""

    def __init__(self, encode: RowEncoder, texts: Sequence[str] = ("text",)) -> None:
        """Take type and dimension from the encoder, and names for columns of text."""
        self.arrow, self.parquet = (
            require(name, "parquet", "a Parquet table") for name in ("pyarrow", "pyarrow.parquet")
        )
        number = self.arrow.field("element", self.arrow.from_numpy_dtype(encode.settings.dtype), nullable=False)
        self._vectors = self.arrow.list_(number, encode.dimension)
        columns = [(name, self.arrow.string()) for name in texts] + [("embedding", self._vectors)]
        self.schema = self.arrow.schema([self.arrow.field(*column, nullable=False) for column in columns])

    def writer(self, file: IO[bytes]) -> Any:  # noqa: ANN401 - pyarrow has no types
        """A writer of such tables; vectors hardly shrink, and nobody looks for the smallest of their components."""
        options = {"use_dictionary": False, "compression": {"text": "zstd"}, "write_statistics": False}
        return self.parquet.ParquetWriter(file, self.schema, **options)

    def of(self, embeddings: Rows, *texts: list[str]) -> Any:  # noqa: ANN401
        """A batch of rows: embeddings (n, D), and the texts of each column (n,)."""
        vectors = self.arrow.FixedSizeListArray.from_arrays(embeddings.reshape(-1), type=self._vectors)
        return self.arrow.record_batch([*texts, vectors], schema=self.schema)
