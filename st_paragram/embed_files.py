"""Encode files of any size: lines to a matrix on disk, pairs to scores."""

from __future__ import annotations

import json
import logging
import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from tqdm import tqdm

from st_paragram.data.lines import read_lines
from st_paragram.data.text import ReadCounts, TextSource, read_pairs
from st_paragram.errors import MiningError, TextError
from st_paragram.files import STDIN, check_output

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]
Scorer = Callable[[Vectors, Vectors], NDArray[np.floating[Any]]]

_LINES = 1 << 14  # lines encoded and written at a time
_BATCH = 4096  # texts in one forward pass


@dataclass
class EncodingReport:
    """What was encoded: lines in all, how many of them were blank, how many stood there from an earlier run."""

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

    Rows are appended to `<output>.part`, so memory is bounded and an interrupted run goes on where it stopped, if
    `<output>.part.json` says that model, input and settings are the same. Read the result with
    `numpy.load(output, mmap_mode="r")`. A blank line gets the embedding of the unknown piece and is counted.

    Args:
        model: any SentenceTransformer.
        source: a text file, plain or compressed, or `-`.
        output: the file to make.
        normalize: scale rows to length 1.
        identity: what tells this model from another, for resuming.
        overwrite: replace an existing output.

    Raises:
        ParagramError: the output exists.
        TextError: the input cannot be read, or is empty.
    """
    output = Path(output)
    check_output(output, overwrite)
    dimension = model.get_embedding_dimension()
    assert dimension is not None
    report = EncodingReport()
    part, settings_file = output.with_name(output.name + ".part"), output.with_name(output.name + ".part.json")
    settings = json.dumps(
        {"model": identity, "input": _identity_of(source), "normalize": normalize, "dimension": dimension}
    )
    lines = read_lines(source)
    if (first := next(lines, None)) is None:  # nothing is touched before the input is known to be readable
        raise TextError(f"{source}: empty; give a text with at least one line")
    lines = chain([first], lines)
    try:
        with _open_part(part, settings_file, settings, dimension, resumable=source != STDIN) as file:
            report.resumed = _whole_rows(file, dimension)
            report.lines = report.resumed
            report.blank = sum(not line.strip() for line in islice(lines, report.resumed))
            with tqdm(initial=report.lines, unit="line", unit_scale=True, disable=None) as bar:
                while batch := list(islice(lines, _LINES)):
                    rows = model.encode(
                        batch, batch_size=_BATCH, normalize_embeddings=normalize, show_progress_bar=False
                    )
                    file.write(np.ascontiguousarray(rows, dtype=np.float32).tobytes())
                    report.lines += len(batch)
                    report.blank += sum(not line.strip() for line in batch)
                    bar.update(len(batch))
            file.seek(0)
            _write_header(file, report.lines, dimension)
    except TextError:  # the input must change, and then these rows are of no use
        part.unlink(missing_ok=True)
        settings_file.unlink(missing_ok=True)
        raise
    part.replace(output)
    settings_file.unlink(missing_ok=True)
    return report


def _identity_of(source: str) -> list[Any]:
    if source == STDIN or not Path(source).exists():
        return [source]
    stat = Path(source).stat()
    return [str(Path(source).resolve()), stat.st_size, stat.st_mtime_ns]


def _open_part(part: Path, settings_file: Path, settings: str, dimension: int, resumable: bool) -> BinaryIO:
    """Open the unfinished output at its end, or a new one."""
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.exists() and resumable and settings_file.exists() and settings_file.read_text(encoding="utf-8") == settings:
        file = part.open("r+b")
        if part.stat().st_size >= _header_size(dimension):
            logger.info("%s: going on where an earlier run stopped", part)
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
    from io import BytesIO

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


def cosines(first: Vectors, second: Vectors) -> NDArray[np.floating[Any]]:
    """Cosines of pairs of rows of length 1: (n, D) twice to (n,)."""
    return np.einsum("nd,nd->n", first, second)


def score_pairs(
    model: SentenceTransformer,
    pairs: Iterable[tuple[str, str]],
    report: EncodingReport | None = None,
    scorer: Scorer = cosines,
) -> Iterator[tuple[float, str, str]]:
    """Yield (score, first, second) for pairs of texts, in order.

    Args:
        model: any SentenceTransformer.
        pairs: of texts.
        report: counts pairs, and those with a blank side.
        scorer: scores pairs of embeddings of length 1.

    Raises:
        MiningError: a score is not finite.
    """
    report = report or EncodingReport()
    pairs = iter(pairs)
    while batch := list(islice(pairs, _LINES)):
        texts = [text for pair in batch for text in pair]
        rows = model.encode(texts, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False)
        scores = scorer(rows[0::2], rows[1::2])
        first_number = report.lines + 1
        report.lines += len(batch)
        report.blank += sum(not (first.strip() and second.strip()) for first, second in batch)
        for number, (score, (first, second)) in enumerate(zip(scores, batch, strict=True), first_number):
            if not math.isfinite(score):
                raise MiningError(f"pair {number}: its score is {score}; the model is damaged, take another")
            yield float(score), first, second


def score_file(
    model: SentenceTransformer,
    source: TextSource,
    output: str | Path,
    overwrite: bool = False,
    scorer: Scorer = cosines,
    scores: array[float] | None = None,
    sort: bool = False,
) -> EncodingReport:
    """Score a file of pairs; write `score TAB first TAB second` per pair.

    Args:
        model: any SentenceTransformer.
        source: the pairs.
        output: the file to make.
        overwrite: replace an existing output.
        scorer: scores pairs of embeddings of length 1.
        scores: the scores are appended to it, as they are written: 8 bytes a pair.
        sort: best pairs first, equally good ones in their order, instead of all in their order. Takes 40 bytes of
            memory a pair, and room on disk for the output twice.

    Raises:
        ParagramError: the output exists.
        TextError: the pairs cannot be read.
        MiningError: a score is not finite.
    """
    output = Path(output)
    check_output(output, overwrite)
    report, counts = EncodingReport(), ReadCounts()
    part = output.with_name(output.name + ".part")
    output.parent.mkdir(parents=True, exist_ok=True)
    if sort and scores is None:
        scores = array("d")
    ends = array("q", [0])
    try:
        with part.open("wb") as file:
            scored = score_pairs(model, read_pairs(source, counts), report, scorer)
            for score, first, second in tqdm(scored, unit="pair", unit_scale=True, disable=None):
                line = f"{score:.6f}\t{first}\t{second}\n".encode()
                file.write(line)
                if scores is not None:
                    scores.append(round(score, 6))
                if sort:
                    ends.append(ends[-1] + len(line))
        if counts.nul_rows:
            raise TextError(
                f"{source.name}: {counts.nul_rows} rows hold NUL bytes and cannot be scored; remove the bytes"
            )
        if sort and scores is not None:
            _sort_rows(part, np.frombuffer(ends, np.int64), np.frombuffer(scores))
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return report


def _sort_rows(path: Path, ends: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
    """Bring the rows of a file, which end where `ends` says, into the order of falling scores."""
    part = path.with_name(f"{path.name}.sorted")
    try:
        with path.open("rb") as rows, mmap(rows.fileno(), 0, access=ACCESS_READ) as text, part.open("wb") as file:
            for row in np.argsort(-scores, kind="stable"):
                file.write(text[ends[row] : ends[row + 1]])
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
