"""Embed the lines of texts of any size; the file extension of the output determines the format.

Blocks of lines become shards in the folder `.<output>.work`, and the shards become the output at
the end. An interrupted run is resumed from its shards if it has the same model, texts and settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from st_paragram.core.encoding.models import TextEncoder, load_encoder
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
from st_paragram.tools.embed_files.formats import Matrix, ParquetTable, write_json_lines
from st_paragram.tools.embed_files.reader import MANIFEST, EmbeddedText, Manifest, Shard
from st_paragram.tools.embed_files.rows import Batch, EmbeddingReport, EmbeddingSettings, RowEncoder
from st_paragram.tools.work import make, work_folder

_Format = Matrix | ParquetTable
_FORMATS: dict[str, type[_Format]] = {
    "": Matrix,  # a folder of matrices
    ".npy": Matrix,
    ".parquet": ParquetTable,
}
_NAMES = "X.npy (a matrix), X.parquet (a table), or a folder without an extension"


@dataclass
class _Text:
    """A text to embed, with the counts of its embedded lines; `column` is None for plain text."""

    path: str
    column: str | None
    report: EmbeddingReport = field(default_factory=EmbeddingReport)

    def lines(self) -> Iterator[str]:
        return read_texts(self.path, self.column)

    def batches(self, encoder: RowEncoder, lines: Iterable[str]) -> Iterator[Batch]:
        return encoder.batches(lines, stream_name(self.path), self.report)


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

    Examples:
        >>> from st_paragram import Encoder, embed_files
        >>> embed_files(Encoder("p-sp-mini"), "lines.txt", "lines.npy").lines
        12
    """
    settings = EmbeddingSettings(dtype, dim, normalize, shard_lines)  # type: ignore[arg-type]
    inputs = _inputs([str(text) for text in names_of(texts)], names_of(columns))
    paths = [text.path for text in inputs]
    file_digests = [file_digest(path) for path in paths]  # refuses missing files
    name = str(model) if isinstance(model, str | Path) else None
    opened: Any = load_encoder(name) if name is not None else model
    encoder = RowEncoder(opened, settings)
    if not isinstance(output, str | Path):
        with unchanged(paths):
            write_json_lines(output, encoder, _batches(inputs, encoder))
        return _total(inputs)
    output = Path(output)
    suffix = output.suffix
    if suffix not in _FORMATS:
        raise SettingsError(f"{output}: unknown extension {suffix}; name {_NAMES}")
    form = _FORMATS[suffix](encoder)
    check = partial(check_output_folder, output, overwrite, MANIFEST, "folder of embeddings")
    key = digest(
        encoder.fingerprint,
        encoder.dimension,
        asdict(settings),
        suffix,
        file_digests,
        [text.column for text in inputs],
    )
    with work_folder(output, overwrite, check=None if suffix else check) as work:
        place = work / f"shards-{key}"
        with unchanged(paths):  # also a text that is cut before its turn
            shards = _make_shards(inputs, place, encoder, form)
        report = _total(inputs)
        if suffix:
            with atomic(output) as file:
                form.write(file, _used(shards, form))
        else:
            report.files = len(shards)
            place.mkdir(exist_ok=True)  # a file without lines has no shards
            _write_manifest(place, encoder, name, inputs, shards)
            with atomic_folder(output) as folder:
                place.rename(folder)
    return report


def _inputs(paths: Sequence[str], columns: Sequence[str | None]) -> list[_Text]:
    if not paths:
        raise SettingsError("no text; give at least one text")
    if paths.count(STDIN) > 1:
        raise SettingsError("standard input is given twice; give each text once")
    if columns and len(columns) != len(paths):
        raise SettingsError(
            f"{len(columns)} columns for {len(paths)} texts; name one per text, None for plain text"
        )
    for path in paths:
        wrong = folder_for_file(path)
        if wrong and path != STDIN:
            raise TextError(f"{wrong}; name a file")
    if not columns:
        return [_Text(path, None) for path in paths]
    return [_Text(path, column) for path, column in zip(paths, columns, strict=True)]


def _total(texts: Sequence[_Text]) -> EmbeddingReport:
    return EmbeddingReport.of(text.report for text in texts)


def _batches(texts: Iterable[_Text], encoder: RowEncoder) -> Iterator[Batch]:
    for text in texts:
        yield from text.batches(encoder, text.lines())


def _make_shards(
    texts: Sequence[_Text], place: Path, encoder: RowEncoder, form: _Format
) -> list[Path]:
    """Make missing shards, each from lines of one text; return all."""
    shards = list[Path]()
    for text in texts:
        lines = text.lines()
        for line in lines:
            shard_lines = chain([line], islice(lines, encoder.settings.shard_lines - 1))
            path = place / f"shard-{len(shards):05d}{form.suffix}"
            if path.exists():
                encoder.count_resumed(shard_lines, text.report)
            else:
                make(path, partial(_write_shard, form, text.batches(encoder, shard_lines)))
            shards.append(path)
    return shards


def _write_shard(form: _Format, batches: Iterable[Batch], path: Path) -> None:
    with path.open("wb") as file:
        form.write(file, form.blocks(batches))


def _used(shards: Iterable[Path], form: _Format) -> Iterator[Any]:
    """Yield the blocks of shards; remove each shard after use, which saves disk space."""
    for path in shards:
        yield from form.read(path)
        path.unlink()


def _write_manifest(
    folder: Path,
    encoder: RowEncoder,
    model: str | None,
    texts: Sequence[_Text],
    shards: Sequence[Path],
) -> None:
    embedded = [EmbeddedText(text.path, text.report.lines, text.report.blank) for text in texts]
    described = []
    for path in shards:
        rows = len(np.load(path, mmap_mode="r"))
        described.append(Shard(path.name, rows, content_digest(path)))
    manifest = Manifest(
        format_version=1,
        rows=sum(shard.rows for shard in described),
        dimension=encoder.dimension,
        dtype=encoder.settings.dtype,
        normalized=encoder.settings.normalize,
        model=model,
        fingerprint=encoder.fingerprint,
        texts=tuple(embedded),
        shards=tuple(described),
    )
    write_json(folder / MANIFEST, asdict(manifest))
