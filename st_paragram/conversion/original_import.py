"""A checkpoint of the original P-SP or SP code as a model directory."""

from __future__ import annotations

from pathlib import Path

from st_paragram.conversion.original_checkpoint import OriginalCheckpoint, read_checkpoint
from st_paragram.conversion.original_report import ImportReport, imported_card
from st_paragram.conversion.original_rows import ImportedRows, exact_rows, shared_rows
from st_paragram.conversion.original_settings import ImportSettings, Reading, reading
from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.directory import check_free
from st_paragram.errors import ModelDirectoryError, one_line
from st_paragram.learning.models import averaging, directory
from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder, pipeline
from st_paragram.learning.modules.token_embedding import token_embedding

_LARGEST_MODEL = 1 << 28  # bytes of a sentencepiece model; one of 50,000 pieces has about one million


def import_checkpoint(
    checkpoint: str | Path,
    output: str | Path,
    sentencepiece: str | Path | None = None,
    settings: ImportSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> ImportReport:
    """Make a model directory of a checkpoint.

    Args:
        checkpoint: a file that the original P-SP code (EMNLP 2022) or SP code (ACL 2019) has saved.
        output: output directory.
        sentencepiece: the sentencepiece model that came with the checkpoint; None for words and trigrams.
        settings: how the model reads texts; by default as the checkpoint's arguments say.
        name: of the model, in its card; by default that of the directory.
        overwrite: replace an existing model directory.

    Raises:
        ModelDirectoryError: the output is refused; the checkpoint is damaged, unsafe or of another kind; or the
            sentencepiece model is not the checkpoint's.
        SettingsError: no sentencepiece model, or a vocabulary that cannot be kept.
        MissingExtraError: Moses or jieba is needed and not installed.

    Example:
        >>> from st_paragram import import_checkpoint
        >>> import_checkpoint("model.para.lc.100.pt", "p-sp-authors", "paranmt.model")  # doctest: +SKIP
    """
    settings = settings or ImportSettings()
    check_free(output, overwrite)
    model = None if sentencepiece is None else read_model(Path(sentencepiece))
    source = read_checkpoint(checkpoint)
    how = reading(source, settings, model)
    rows = (exact_rows if settings.exact else shared_rows)(source, how)
    encoder = pipeline(token_embedding(rows.tokenizer, weights=rows.table, dropout=how.dropout), device="cpu")
    _check(encoder, settings.exact)
    report = _report(source, how, rows)
    card = imported_card(name or Path(output).name, report, source.path.name, opens_in_stock(encoder))
    directory.save(encoder, output, card, overwrite)
    return report


def opens_in_stock(encoder: ParagramEncoder) -> bool:
    """Whether sentence-transformers alone opens the model."""
    return model_files.opens_in_stock(averaging.embedding_of(encoder).tokenizer)


def read_model(path: Path) -> bytes:
    """The bytes of a sentencepiece model.

    Raises:
        ModelDirectoryError: it cannot be read, or is too large to be one.
    """
    try:
        if (size := path.stat().st_size) > _LARGEST_MODEL:
            raise ModelDirectoryError(f"{path}: {size:,} bytes are too many for a sentencepiece model; check the path")
        return path.read_bytes()
    except OSError as error:
        raise ModelDirectoryError(f"{path}: cannot be read ({one_line(error, about=path)}); check the path") from error


def _check(encoder: ParagramEncoder, exact: bool) -> None:
    try:
        directory.check_savable(encoder)
    except ModelDirectoryError as error:
        if exact:
            raise
        raise ModelDirectoryError(f"{error}, or import with --exact") from error


def _report(source: OriginalCheckpoint, how: Reading, rows: ImportedRows) -> ImportReport:
    return ImportReport(
        rows.tokenizer.kind,
        rows.table.shape[1],
        rows.rows,
        rows.left_out,
        rows.pieces_without_row,
        how.lower_case,
        how.moses,
        source.epoch,
        source.digest,
    )
