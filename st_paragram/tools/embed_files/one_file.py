"""Encode one text of any size: its lines to a matrix in one file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from tqdm import tqdm

from st_paragram.core.data.lines import read_lines
from st_paragram.core.data.streams import stream_name
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.files import STDIN, file_digest, output_files
from st_paragram.core.settings import read
from st_paragram.core.vectors.npy_shards import little_endian, write_header
from st_paragram.core.vectors.packing import NumberType
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.embed_files.row_encoder import RowEncoder, batches, blank_lines, pack_lines
from st_paragram.tools.embed_files.settings import RowSettings

logger = logging.getLogger(__name__)


@dataclass
class EncodingReport:
    """What was encoded: lines in all, how many of them were blank, how many had been encoded by an earlier run."""

    lines: int = 0
    blank: int = 0
    resumed: int = 0


@dataclass(frozen=True)
class _Rows:
    """The rows of the matrix: how they are made, their type and size."""

    encode: RowEncoder
    dtype: NumberType

    @property
    def dimension(self) -> int:
        return self.encode.dimension

    @property
    def row_bytes(self) -> int:
        return self.dimension * np.dtype(self.dtype.value).itemsize

    @property
    def header_bytes(self) -> int:
        header = BytesIO()
        write_header(header, self.dtype.value, (0, self.dimension))
        return header.tell()


def embed_file(
    model: TextEncoder,
    source: str,
    output: str | Path,
    normalize: bool = False,
    identity: str = "",
    overwrite: bool = False,
    dtype: NumberType | str = NumberType.FLOAT32,
    dim: int | None = None,
) -> EncodingReport:
    """Encode each line of a file into a row of a float32 or float16 `.npy` matrix (N, D), in order.

    Rows are appended to `<output>.part`, so memory is bounded, and an interrupted run is resumed where it stopped if
    `<output>.part.json` says that model, input and settings are the same. Read the result with
    `numpy.load(output, mmap_mode="r")`. A blank line gets the embedding of the unknown piece and is counted.

    Args:
        model: An `Encoder` or any SentenceTransformer.
        source: A text file, plain or compressed, or `-`.
        output: The file to make.
        normalize: Scale rows to length 1.
        identity: What tells this model from another, for resuming.
        overwrite: Replace an existing output.
        dtype: Type of the numbers, float32 or float16.
        dim: Keep the first components only; all if None.

    Raises:
        ParagramError: The output exists, cannot be written, or another run is writing it; or an embedding is not
            finite.
        SettingsError: The type is int8, whose scales need a file of their own; `dim` is larger than the model's; or a
            component is too large for float16.
        TextError: The input cannot be read, or is empty.
    """
    output, settings = Path(output), read(RowSettings, overrides={"dtype": dtype, "dim": dim, "normalize": normalize})
    check_one_file(settings)
    with output_files(output, overwrite=overwrite):
        return _embed(model, source, output, settings, identity)


def check_one_file(settings: RowSettings) -> None:
    """Refuse what one matrix cannot hold.

    Raises:
        SettingsError: The type is int8.
    """
    if settings.dtype is NumberType.INT8:
        seen = "dtype is int8, which needs the scale of each row beside the matrix"
        raise SettingsError(
            f"{seen}; choose float16 or float32, or make a folder (--sharded, or embed_collection in Python)"
        )


def _embed(model: TextEncoder, source: str, output: Path, settings: RowSettings, identity: str) -> EncodingReport:
    rows = _Rows(RowEncoder(model, settings), settings.dtype)
    lines = _not_empty(read_lines(source), source)  # nothing is touched before the input is known to be readable
    how = {"normalize": settings.normalize, "dimension": rows.dimension, "dtype": rows.dtype.value}
    described = json.dumps({"model": identity, "input": file_digest(source), **how})
    report = EncodingReport()
    part, settings_file = output.with_name(output.name + ".part"), output.with_name(output.name + ".part.json")
    try:
        with _open_part(part, settings_file, described, rows, resumable=source != STDIN) as file:
            report.resumed = report.lines = _whole_rows(file, rows)
            report.blank = blank_lines(islice(lines, report.resumed))
            _write_rows(file, rows, lines, stream_name(source), report)
            file.seek(0)
            write_header(file, rows.dtype.value, (report.lines, rows.dimension))
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


def _write_rows(file: BinaryIO, rows: _Rows, lines: Iterable[str], name: str, report: EncodingReport) -> None:
    """Encode lines and append their rows; counts them."""
    with tqdm(initial=report.lines, unit="line", unit_scale=True, disable=None) as bar:
        for batch in batches(lines):
            packed = pack_lines(rows.encode(batch), rows.dtype, name, report.lines + 1)
            file.write(little_endian(packed.numbers))
            report.lines += len(batch)
            report.blank += blank_lines(batch)
            bar.update(len(batch))


def _open_part(part: Path, settings_file: Path, settings: str, rows: _Rows, resumable: bool) -> BinaryIO:
    """Open the unfinished output at its end, or a new one."""
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.exists() and resumable and settings_file.exists() and settings_file.read_text(encoding="utf-8") == settings:
        file = part.open("r+b")
        if part.stat().st_size >= rows.header_bytes:
            logger.info("%s: resumed where an earlier run stopped", part)
            return file
        file.close()
    file = part.open("w+b")  # before the settings: rows of other settings must never stand beside these
    write_header(file, rows.dtype.value, (0, rows.dimension))
    file.flush()
    settings_file.write_text(settings, encoding="utf-8")
    return file


def _whole_rows(file: BinaryIO, rows: _Rows) -> int:
    """Cut a torn row off the end, stay there, and return the number of rows before it."""
    whole = (file.seek(0, 2) - rows.header_bytes) // rows.row_bytes
    file.truncate(rows.header_bytes + whole * rows.row_bytes)
    file.seek(0, 2)
    return int(whole)
