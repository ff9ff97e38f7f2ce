"""Encode one text of any size: its lines to a matrix in one file, or to JSON lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, BinaryIO

from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.packing import NumberType
from st_paragram.core.files import STDIN, file_digest, output_files
from st_paragram.core.settings import read
from st_paragram.core.text.streams import stream_name
from st_paragram.core.text.tables import read_texts
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.embed_files.row_encoder import RowEncoder, batches, blank_lines, pack_lines
from st_paragram.tools.embed_files.row_files import JsonRows, NpyRows, RowFile
from st_paragram.tools.embed_files.settings import RowSettings

logger = logging.getLogger(__name__)


@dataclass
class EncodingReport:
    """What was encoded: lines in all, how many of them were blank, how many had been encoded by an earlier run."""

    lines: int = 0
    blank: int = 0
    resumed: int = 0


def embed_file(
    model: TextEncoder,
    source: str,
    output: str | Path,
    normalize: bool = False,
    identity: str = "",
    overwrite: bool = False,
    dtype: NumberType | str = NumberType.FLOAT32,
    dim: int | None = None,
    column: str | None = None,
    json_lines: bool = False,
    with_text: bool = False,
) -> EncodingReport:
    """Encode each line of a file into a row of a float32 or float16 `.npy` matrix (N, D), in order, or into JSON lines.

    Rows are appended to `<output>.part`, so memory is bounded, and an interrupted run is resumed where it stopped if
    `<output>.part.json` says that model, input and settings are the same. Read the result with
    `numpy.load(output, mmap_mode="r")`. A blank line gets the embedding of the unknown piece and is counted.

    Args:
        model: An `Encoder` or any SentenceTransformer.
        source: A text file, plain or compressed, or `-`.
        output: The file to make.
        normalize: Scale rows to length 1.
        identity: What identifies this model, for resuming.
        overwrite: Replace an existing output.
        dtype: Type of the numbers, float32 or float16.
        dim: Keep the first components only; all if None.
        column: The column that has the text, if the file is a table (`tables.read_columns`).
        json_lines: Write JSON lines, `{"line": 1, "embedding": [0.25, ...]}`, in place of a matrix.
        with_text: Add each line to its object of JSON, as `text`.

    Raises:
        ParagramError: The output exists, cannot be written, or another run is writing it; or an embedding is not
            finite.
        SettingsError: The type is int8, whose scales need a separate file; `dim` is larger than the model's; or a
            component is too large for float16.
        TextError: The input cannot be read, or is empty.

    Example:
        >>> from st_paragram import Encoder, embed_file
        >>> report = embed_file(Encoder("p-sp-mini"), "lines.txt", "lines.npy")
    """
    output, settings = Path(output), read(RowSettings, overrides={"dtype": dtype, "dim": dim, "normalize": normalize})
    check_one_file(settings)
    with output_files(output, overwrite=overwrite):
        encode = RowEncoder(model, settings)
        rows = _row_file(encode, settings, json_lines, with_text)
        return _embed(encode, rows, _Input(source, column), output, settings, identity)


def embed_to_stream(
    model: TextEncoder,
    source: str,
    stream: IO[bytes],
    settings: RowSettings,
    column: str | None = None,
    with_text: bool = False,
) -> EncodingReport:
    """Encode each line of a file into an object of JSON on a line of a stream, as `embed_file` writes it to a file.

    Args:
        model: As of `embed_file`.
        source: As of `embed_file`.
        stream: Takes the lines, and is flushed after some thousands.
        settings: What the embeddings are like.
        column: As of `embed_file`.
        with_text: As of `embed_file`.

    Raises:
        ParagramError: As `embed_file`.
    """
    check_one_file(settings)
    encode, report = RowEncoder(model, settings), EncodingReport()
    lines = _not_empty(read_texts(source, column), source)
    _write_rows(stream, encode, _row_file(encode, settings, True, with_text), lines, stream_name(source), report)
    return report


@dataclass(frozen=True)
class _Input:
    """A file, and its column if it is a table."""

    path: str
    column: str | None

    @property
    def identity(self) -> dict[str, str]:
        column = {} if self.column is None else {"column": self.column}
        return {"input": file_digest(self.path), **column}


def _row_file(encode: RowEncoder, settings: RowSettings, json_lines: bool, with_text: bool) -> RowFile:
    if json_lines:
        return JsonRows(encode.dimension, settings.dtype, with_text)
    return NpyRows(encode.dimension, settings.dtype)


def check_one_file(settings: RowSettings) -> None:
    """Refuse what one matrix cannot hold.

    Raises:
        SettingsError: The type is int8.
    """
    if settings.dtype is NumberType.INT8:
        seen = "dtype is int8, which needs a separate scale for each row"
        raise SettingsError(
            f"{seen}; choose float16 or float32, or make a folder (--sharded, or embed_collection in Python)"
        )


def _embed(
    encode: RowEncoder, rows: RowFile, source: _Input, output: Path, settings: RowSettings, identity: str
) -> EncodingReport:
    # nothing is touched before the input is known to be readable
    lines = _not_empty(read_texts(source.path, source.column), source.path)
    how = {"normalize": settings.normalize, **rows.identity()}
    described = json.dumps({"model": identity, **source.identity, **how})
    report = EncodingReport()
    part, settings_file = output.with_name(output.name + ".part"), output.with_name(output.name + ".part.json")
    try:
        with _open_part(part, settings_file, described, rows, resumable=source.path != STDIN) as file:
            report.resumed = report.lines = rows.whole_rows(file)
            report.blank = blank_lines(islice(lines, report.resumed))
            _write_rows(file, encode, rows, lines, stream_name(source.path), report)
            rows.finish(file, report.lines)
    except TextError:  # the input must change, and then these rows are of no use
        part.unlink(missing_ok=True)
        settings_file.unlink(missing_ok=True)
        raise
    part.replace(output)
    settings_file.unlink(missing_ok=True)
    return report


def _not_empty(lines: Iterator[str], source: str) -> Iterator[str]:
    if (first := next(lines, None)) is None:
        raise TextError(f"{source}: empty; give a text with at least one line")
    return chain([first], lines)


def _write_rows(
    file: IO[bytes], encode: RowEncoder, rows: RowFile, lines: Iterable[str], name: str, report: EncodingReport
) -> None:
    """Encode lines and append their rows; counts them."""
    with tqdm(initial=report.lines, unit="line", unit_scale=True, disable=None) as bar:
        for batch in batches(lines):
            packed = pack_lines(encode(batch), rows.dtype, name, report.lines + 1)
            file.writelines(rows.rows(packed, batch, report.lines + 1))
            report.lines += len(batch)
            report.blank += blank_lines(batch)
            bar.update(len(batch))


def _open_part(part: Path, settings_file: Path, settings: str, rows: RowFile, resumable: bool) -> BinaryIO:
    """Open the unfinished output at its end, or a new one."""
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.exists() and resumable and settings_file.exists() and settings_file.read_text(encoding="utf-8") == settings:
        logger.info("%s: resumed where an earlier run stopped", part)
        return part.open("r+b")
    file = part.open("w+b")  # before the settings: rows of other settings must never be mixed with these
    rows.begin(file)
    file.flush()
    settings_file.write_text(settings, encoding="utf-8")
    return file
