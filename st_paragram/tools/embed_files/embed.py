"""Embed the lines of texts of any size; the ending of the output says what it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from st_paragram.core.extras import require
from st_paragram.core.files import (
    STDIN,
    check_output,
    check_output_folder,
    file_digest,
    folder_for_file,
    output_lock,
)
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.embed_files.folder import embed_to_folder, embed_to_parquet
from st_paragram.tools.embed_files.one_file import JsonRows, NpyRows, embed_to_file, embed_to_stream
from st_paragram.tools.embed_files.reader import MANIFEST
from st_paragram.tools.embed_files.rows import EmbeddingReport, EmbeddingSettings, RowEncoder, Text

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

_FORMS = ("", ".npy", ".jsonl", ".parquet")
_NAMES = "X.npy (a matrix), X.parquet (a table), X.jsonl (JSON lines), or a folder without an ending"


def embed_files(
    model: TextEncoder | str | Path,
    texts: str | Path | Sequence[str | Path],
    output: str | Path | IO[bytes],
    *,
    dtype: str = "float32",
    dim: int | None = None,
    normalize: bool = False,
    shard_lines: int = 100_000,
    columns: Sequence[str | None] = (),
    overwrite: bool = False,
) -> EmbeddingReport:
    """Embed each line of some texts, in their order.

    The ending of the output is the form of the result:

    - `X.npy`: a matrix (N, D) for `numpy.load(output, mmap_mode="r")`;
    - `X.parquet`: a table with the columns `text` and `embedding` (extra `parquet`);
    - `X.jsonl`: `{"line": 1, "text": "...", "embedding": [0.25, ...]}` on each line;
    - a name without an ending: a folder of matrices, one or more for each text, for `read_embeddings`.

    Memory is bounded. A run that was interrupted is resumed by the same call; nothing is taken over from another model,
    from a text that has changed, or from other settings. A blank line gets the embedding of the unknown token.

    Args:
        model: An `Encoder`, a SentenceTransformer, or the directory, name or hub id of a model.
        texts: Files (or one), plain or compressed, or `-`, with one text per line.
        output: The file or folder to make, or a binary stream, which gets JSON lines.
        dtype: Type of the numbers, float32 or float16.
        dim: Keep the first components only; None: all.
        normalize: Scale embeddings to length 1.
        shard_lines: Maximum lines of a matrix of a folder.
        columns: The column of each text if it is a table; None, or nothing at all, for plain text.
        overwrite: Replace an existing output.

    Example:
        >>> from st_paragram import Encoder, embed_files
        >>> embed_files(Encoder("p-sp-mini"), "lines.txt", "lines.npy").lines
        12
    """
    settings = EmbeddingSettings(dtype, dim, normalize, shard_lines)  # type: ignore[arg-type]
    paths = [str(text) for text in ([texts] if isinstance(texts, str | Path) else texts)]
    if columns and len(columns) != len(paths):
        raise SettingsError(f"{len(columns)} columns for {len(paths)} texts; name one per text, None for plain text")
    inputs = [Text(path, column) for path, column in zip(paths, columns or [None] * len(paths), strict=True)]
    _check_inputs(paths)
    if not isinstance(output, str | Path):
        encode = _encoder(model, settings)
        embed_to_stream(inputs, output, encode, JsonRows(encode))
        return encode.report
    output = Path(output)
    check = _check(output, overwrite)
    check()
    encode = _encoder(model, settings)
    with output_lock(output, check):
        if output.suffix == ".parquet":
            embed_to_parquet(inputs, output, encode)
        elif output.suffix:
            embed_to_file(inputs, output, encode, NpyRows if output.suffix == ".npy" else JsonRows)
        else:
            embed_to_folder(inputs, output, encode, str(model) if isinstance(model, str | Path) else None)
    return encode.report


def _check_inputs(paths: Sequence[str]) -> None:
    if not paths or paths.count(STDIN) > 1:
        raise SettingsError(f"{'standard input twice' if paths else 'no text'} to embed; give each text once")
    for path in paths:
        if path != STDIN:
            if wrong := folder_for_file(path):
                raise TextError(f"{wrong}; name a file")
            file_digest(path)


def _check(output: Path, overwrite: bool) -> Callable[[], None]:
    """What refuses an output, before any work and again when nobody else can write it."""
    if output.suffix not in _FORMS:
        raise SettingsError(f"{output}: unknown ending {output.suffix}; name {_NAMES}")
    if output.suffix == ".parquet":
        require("pyarrow.parquet", "parquet", f"{output}: a Parquet table")
    if output.suffix:
        return partial(check_output, output, overwrite)
    return partial(check_output_folder, output, overwrite, MANIFEST, "folder of embeddings")


def _encoder(model: TextEncoder | str | Path, settings: EmbeddingSettings) -> RowEncoder:
    from st_paragram.core.encoding.models import load_encoder

    return RowEncoder(load_encoder(model) if isinstance(model, str | Path) else model, settings)
