"""Embed the lines of texts of any size; the file extension of the output determines the format.

Blocks of lines become shards in the folder `.<output>.work`, and the shards become the output at
the end. An interrupted run is resumed from its shards if it has the same model, texts and settings.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from st_paragram.core.extras import require
from st_paragram.core.files import (
    STDIN,
    atomic,
    content_digest,
    digest,
    file_digest,
    folder_for_file,
    names_of,
    write_json,
)
from st_paragram.core.folders import atomic_folder
from st_paragram.core.outputs import check_output_folder
from st_paragram.core.text.streams import stream_name, unchanged
from st_paragram.core.text.tables import read_texts
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.embed_files.reader import MANIFEST, EmbeddedText, Manifest, Shard
from st_paragram.tools.embed_files.rows import Batch, EmbeddingReport, EmbeddingSettings, RowEncoder
from st_paragram.tools.work import make, work_folder

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

_NAMES = "X.npy (a matrix), X.parquet (a table), or a folder without an extension"
_DIGITS = {"float32": "%.9g", "float16": "%.5g"}  # enough to distinguish all numbers of a type


def embed_files(
    model: TextEncoder | str | Path,
    texts: str | Path | Sequence[str | Path],
    output: str | Path | IO[bytes],
    *,
    dtype: str = "float32",
    dim: int | None = None,
    normalize: bool = False,
    shard_lines: int = 100_000,
    columns: str | Sequence[str | None] = (),
    overwrite: bool = False,
) -> EmbeddingReport:
    """Embed each line of some texts, in order.

    The file extension of the output determines the format:

    - `X.npy`: a matrix (N, D) for `numpy.load(output, mmap_mode="r")`;
    - `X.parquet`: a table with the columns `text` and `embedding` (extra `parquet`);
    - a name without an extension: a folder of matrices, one or more for each text, for
        `read_embeddings`.

    The same call resumes an interrupted run, unless the model, a text or a setting has changed.
    Each line, also a blank line, has a row: its embedding by `encode`.

    Args:
        model: An `Encoder`, a SentenceTransformer, or the directory, name or hub id of a model.
        texts: One or more files, plain or compressed, or `-`, with one text per line.
        output: Output file or folder, or a binary stream, which gets JSON lines such as
            `{"line": 1, "text": "...", "embedding": [0.25, ...]}`.
        dtype: Number type, float32 or float16.
        dim: Number of first dimensions to keep; None: all.
        normalize: Scale embeddings to length 1.
        shard_lines: Maximum lines per matrix in a folder; for other outputs, lines saved at a time.
        columns: Column of each text if it is a table, None for plain text; empty if all are plain
            text.
        overwrite: Replace an existing output.

    Example:
        >>> from st_paragram import Encoder, embed_files
        >>> embed_files(Encoder("p-sp-mini"), "lines.txt", "lines.npy").lines
        12
    """
    from st_paragram.core.encoding.models import load_encoder

    settings = EmbeddingSettings(dtype, dim, normalize, shard_lines)  # type: ignore[arg-type]
    paths = [str(text) for text in names_of(texts)]
    columns = names_of(columns)
    if columns and len(columns) != len(paths):
        raise SettingsError(
            f"{len(columns)} columns for {len(paths)} texts; name one per text, None for plain text"
        )
    if not paths or paths.count(STDIN) > 1:
        raise SettingsError(
            f"{'standard input is given twice' if paths else 'no text'}; give each text once"
        )
    for path in paths:
        if path != STDIN and (wrong := folder_for_file(path)):
            raise TextError(f"{wrong}; name a file")
    inputs = list(zip(paths, columns or [None] * len(paths), strict=True))
    digests = [[file_digest(path), column] for path, column in inputs]  # refuses missing files
    encode = RowEncoder(load_encoder(model) if isinstance(model, str | Path) else model, settings)
    if not isinstance(output, str | Path):
        with unchanged(paths):
            for path, column in inputs:
                first = encode.report.lines + 1
                batches = encode.embedded(read_texts(path, column), stream_name(path), 1)
                _write_json_lines(output, encode, batches, first)
        _check_not_empty(encode.report, paths)
        return encode.report
    output = Path(output)
    if not output.name:
        raise SettingsError(f"{output}: cannot be replaced; name a new folder or a file")
    if output.suffix not in ("", *_FORMS):
        raise SettingsError(f"{output}: unknown extension {output.suffix}; name {_NAMES}")
    if output.suffix == ".parquet":
        require("pyarrow.parquet", "parquet", f"{output}: a Parquet table")
    check = partial(check_output_folder, output, overwrite, MANIFEST, "folder of embeddings")
    with work_folder(output, overwrite, check=None if output.suffix else check) as work:
        place = work / digest(
            encode.fingerprint, encode.dimension, asdict(settings), output.suffix, digests
        )
        for other in work.iterdir():
            if other.is_dir() and other != place:  # of other settings, and inside our work folder
                shutil.rmtree(other)
        with unchanged(paths):  # also a text that is cut before its turn
            shards, embedded = _make_shards(inputs, place, encode, output.suffix or ".npy")
        _check_not_empty(encode.report, paths)
        if output.suffix:
            with atomic(output) as file:
                _FORMS[output.suffix][1](file, encode, _used(shards))
            return encode.report
        named = str(model) if isinstance(model, str | Path) else None
        kinds = (
            encode.report.lines,
            encode.dimension,
            dtype,
            normalize,
            named,
            encode.fingerprint,
            tuple(embedded),
        )
        described = tuple(
            Shard(path.name, rows, content_digest(path)) for path, rows in shards.items()
        )
        write_json(place / MANIFEST, asdict(Manifest(1, *kinds, described)))  # type: ignore[arg-type]
        with atomic_folder(output) as folder:
            place.rename(folder)
    encode.report.files = len(shards)
    return encode.report


def _check_not_empty(report: EmbeddingReport, paths: Sequence[str]) -> None:
    if not report.lines:
        raise TextError(
            f"{', '.join(map(stream_name, paths))}: empty; give a text with at least one line"
        )


def _make_shards(
    inputs: Sequence[tuple[str, str | None]], folder: Path, encode: RowEncoder, suffix: str
) -> tuple[dict[Path, int], list[EmbeddedText]]:
    """Make missing shards, each from lines of one text; return their numbers of rows, and the
    counts of each text.
    """
    shards, texts, report = dict[Path, int](), list[EmbeddedText](), encode.report
    for name, column in inputs:
        lines, before, blank = read_texts(name, column), report.lines, report.blank
        for line in lines:
            path, start = folder / f"shard-{len(shards):05d}{suffix}", report.lines
            part = chain([line], islice(lines, encode.settings.shard_lines - 1))
            if path.exists():
                encode.count_resumed(part)
            else:
                batches = encode.embedded(part, stream_name(name), start - before + 1)
                make(path, partial(_write_shard, encode, batches, start + 1, suffix))
            shards[path] = report.lines - start
        texts.append(EmbeddedText(name, report.lines - before, report.blank - blank))
    return shards, texts


def _write_shard(
    encode: RowEncoder, batches: Iterator[Batch], first: int, suffix: str, path: Path
) -> None:
    with path.open("wb") as file:
        _FORMS[suffix][0](file, encode, batches, first)


def _used(shards: Iterable[Path]) -> Iterator[Path]:
    """Remove each shard after use, so that shards and output together take no more space than the
    output.
    """
    for path in shards:
        yield path
        path.unlink()


def _begin_npy(file: IO[bytes], encode: RowEncoder, rows: int) -> None:
    """Write the header for a number of rows; its size does not depend on the number."""
    shape = {
        "descr": np.dtype(encode.settings.dtype).str,
        "fortran_order": False,
        "shape": (rows, encode.dimension),
    }
    npy.write_array_header_1_0(file, shape)  # leaves space for the digits of larger numbers


def _write_npy(file: IO[bytes], encode: RowEncoder, batches: Iterator[Batch], first: int) -> None:
    _begin_npy(file, encode, 0)
    for _, rows in batches:
        file.write(rows.data)
    file.seek(0)
    _begin_npy(file, encode, encode.report.lines - first + 1)


def _join_npy(file: IO[bytes], encode: RowEncoder, shards: Iterator[Path]) -> None:
    _begin_npy(file, encode, encode.report.lines)
    for path in shards:
        file.write(np.load(path, mmap_mode="r").data)


def _write_json_lines(
    file: IO[bytes], encode: RowEncoder, batches: Iterator[Batch], first: int
) -> None:
    numbers = ", ".join([_DIGITS[encode.settings.dtype]] * encode.dimension)
    for lines, rows in batches:
        for number, (line, row) in enumerate(zip(lines, rows.tolist(), strict=True), first):
            text = json.dumps(line, ensure_ascii=False)
            file.write(
                f'{{"line": {number}, "text": {text}, "embedding": [{numbers % tuple(row)}]}}\n'.encode()
            )
        first += len(lines)


class ParquetTable:
    """Tables with text columns, and embeddings as lists of D numbers."""

    def __init__(self, encode: RowEncoder, texts: Sequence[str] = ("text",)) -> None:
        """Use type and dimension of the encoder, and names for text columns."""
        arrow, self.parquet = (
            require(name, "parquet", "a Parquet table") for name in ("pyarrow", "pyarrow.parquet")
        )
        number = arrow.field(
            "element", arrow.from_numpy_dtype(encode.settings.dtype), nullable=False
        )
        self._arrow, self._vectors = arrow, arrow.list_(number, encode.dimension)
        columns = [(name, arrow.string()) for name in texts] + [("embedding", self._vectors)]
        self.schema = arrow.schema([arrow.field(*column, nullable=False) for column in columns])

    def writer(self, file: IO[bytes]) -> Any:
        """Return a writer of such tables, without compression or statistics of vectors, which have
        little effect.
        """
        options = {
            "use_dictionary": False,
            "compression": {"text": "zstd"},
            "write_statistics": False,
        }
        return self.parquet.ParquetWriter(file, self.schema, **options)

    def of(self, embeddings: Any, *texts: list[str]) -> Any:
        """Make a batch of rows: embeddings (n, D), and the texts of each column (n,)."""
        vectors = self._arrow.FixedSizeListArray.from_arrays(
            embeddings.reshape(-1), type=self._vectors
        )
        return self._arrow.record_batch([*texts, vectors], schema=self.schema)


def _write_parquet(
    file: IO[bytes], encode: RowEncoder, batches: Iterator[Batch], first: int
) -> None:
    table = ParquetTable(encode)
    with table.writer(file) as writer:
        for lines, rows in batches:
            writer.write_batch(table.of(rows, lines))


def _join_parquet(file: IO[bytes], encode: RowEncoder, shards: Iterator[Path]) -> None:
    table = ParquetTable(encode)
    with table.writer(file) as writer:
        for path in shards:
            with table.parquet.ParquetFile(path) as shard:
                for group in range(shard.num_row_groups):
                    writer.write_table(shard.read_row_group(group))


#: File extension -> functions that write a shard, and that make the output from shards.
_FORMS: dict[str, tuple[Any, Any]] = {
    ".npy": (_write_npy, _join_npy),
    ".parquet": (_write_parquet, _join_parquet),
}
