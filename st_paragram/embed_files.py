"""Encode files of any size: lines to a matrix on disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.lib import format as npy
from tqdm import tqdm

from st_paragram.data.lines import read_lines
from st_paragram.errors import TextError
from st_paragram.files import STDIN, file_digest, output_files

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

_LINES = 1 << 14  # lines encoded and written at a time
_BATCH = 4096  # texts in one forward pass


@dataclass
class EncodingReport:
    """What was encoded: lines in all, how many of them were blank, how many had been encoded by an earlier run."""

    lines: int = 0
    blank: int = 0
    resumed: int = 0


def embed_file(
    model: SentenceTransformer,
    source: str,
    output: str | Path,
    normalize: bool = False,
    identity: str = "",
    overwrite: bool = False,
) -> EncodingReport:
    """Encode each line of a file into a row of a float32 `.npy` matrix (N, D), in order.

    Rows are appended to `<output>.part`, so memory is bounded, and an interrupted run is resumed where it stopped if
    `<output>.part.json` says that model, input and settings are the same. Read the result with
    `numpy.load(output, mmap_mode="r")`. A blank line gets the embedding of the unknown piece and is counted.

    Args:
        model: Any SentenceTransformer.
        source: A text file, plain or compressed, or `-`.
        output: The file to make.
        normalize: Scale rows to length 1.
        identity: What tells this model from another, for resuming.
        overwrite: Replace an existing output.

    Raises:
        ParagramError: The output exists, cannot be written, or another run is writing it.
        TextError: The input cannot be read, or is empty.
    """
    output = Path(output)
    with output_files(output, overwrite=overwrite):
        return _embed(model, source, output, normalize, identity)


def _embed(model: SentenceTransformer, source: str, output: Path, normalize: bool, identity: str) -> EncodingReport:
    dimension = model.get_embedding_dimension()
    assert dimension is not None
    lines = _not_empty(read_lines(source), source)  # nothing is touched before the input is known to be readable
    described = {"model": identity, "input": file_digest(source), "normalize": normalize, "dimension": dimension}
    report = EncodingReport()
    part, settings_file = output.with_name(output.name + ".part"), output.with_name(output.name + ".part.json")
    try:
        with _open_part(part, settings_file, json.dumps(described), dimension, resumable=source != STDIN) as file:
            report.resumed = report.lines = _whole_rows(file, dimension)
            report.blank = sum(not line.strip() for line in islice(lines, report.resumed))
            _write_rows(file, model, lines, normalize, report)
            file.seek(0)
            _write_header(file, report.lines, dimension)
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
    file: BinaryIO, model: SentenceTransformer, lines: Iterable[str], normalize: bool, report: EncodingReport
) -> None:
    """Encode lines and append their rows; counts them."""
    lines = iter(lines)
    with tqdm(initial=report.lines, unit="line", unit_scale=True, disable=None) as bar:
        while batch := list(islice(lines, _LINES)):
            rows = model.encode(batch, batch_size=_BATCH, normalize_embeddings=normalize, show_progress_bar=False)
            file.write(np.ascontiguousarray(rows, dtype=np.float32).tobytes())
            report.lines += len(batch)
            report.blank += sum(not line.strip() for line in batch)
            bar.update(len(batch))


def _open_part(part: Path, settings_file: Path, settings: str, dimension: int, resumable: bool) -> BinaryIO:
    """Open the unfinished output at its end, or a new one."""
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.exists() and resumable and settings_file.exists() and settings_file.read_text(encoding="utf-8") == settings:
        file = part.open("r+b")
        if part.stat().st_size >= _header_size(dimension):
            logger.info("%s: resumed where an earlier run stopped", part)
            return file
        file.close()
    file = part.open("w+b")  # before the settings: rows of other settings must never stand beside these
    _write_header(file, 0, dimension)
    file.flush()
    settings_file.write_text(settings, encoding="utf-8")
    return file


def _write_header(file: BinaryIO, rows: int, dimension: int) -> None:
    """Write the `.npy` header; numpy pads it so that it keeps its size while the number of rows grows."""
    npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, dimension)})


def _header_size(dimension: int) -> int:
    header = BytesIO()
    _write_header(header, 0, dimension)
    return header.tell()


def _whole_rows(file: BinaryIO, dimension: int) -> int:
    """Cut a torn row off the end, stay there, and return the number of rows before it."""
    size = _header_size(dimension)
    rows = (file.seek(0, 2) - size) // (4 * dimension)
    file.truncate(size + rows * 4 * dimension)
    file.seek(0, 2)
    return int(rows)
