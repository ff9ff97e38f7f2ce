"""A checkpoint of the original P-SP or SP code as a model directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from st_paragram.conversion.original_checkpoint import read_checkpoint
from st_paragram.conversion.original_rows import exact_rows, shared_rows
from st_paragram.conversion.original_settings import ImportSettings, reading
from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.directory import check_free
from st_paragram.core.tables import markdown_table
from st_paragram.core.version import installed_version
from st_paragram.errors import ModelDirectoryError, one_line
from st_paragram.learning.models import directory
from st_paragram.learning.models.card import Card, blocks, render
from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder, pipeline
from st_paragram.learning.modules.token_embedding import token_embedding

_LARGEST_MODEL = 1 << 28  # bytes of a sentencepiece model; one of 50,000 pieces has about one million
_TERMS = """\
**Licence and terms are those of the authors of the checkpoint.** st_paragram's own licence does not cover these
weights; look up what the authors allow before you pass them on."""
_ORIGIN = """\
This model was not trained with st_paragram. It was imported by `st-paragram import` (st_paragram {version}) from a
checkpoint of the original code of {paper}."""
_SP = "SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, ACL 2019)"
_PAPER = "P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022) or its predecessor " + _SP
_TOKENS = {"sentencepiece": "sentencepiece", "word": "word", "trigram": "character trigram", "original": "token"}


@dataclass(frozen=True)
class ImportReport:
    """What was imported, and what was not."""

    tokens: str  # "sentencepiece", "word" or "trigram", or "original" for an exact import
    dimension: int
    rows: int  # of the checkpoint that belong to a string
    left_out: int  # those of them that no text reaches in the imported model
    pieces_without_row: int  # pieces that are dropped on encoding, as the original code drops them
    lower_case: bool
    moses: str | None  # language of Moses tokenization before all else
    epoch: int | None  # of the checkpoint
    digest: str  # SHA-256 of the checkpoint

    @property
    def left_out_share(self) -> float:
        """The share of the rows that no text reaches, 0 .. 1."""
        return self.left_out / self.rows

    def sentences(self) -> list[str]:
        """What was imported, and what was not, for a person to read."""
        epoch = "" if self.epoch is None else f" of epoch {self.epoch}"
        done = [f"{self.rows - self.left_out:,} rows{epoch}, {self.dimension:,} components"]
        if self.left_out:
            done.append(
                f"{self.left_out:,} of {self.rows:,} rows ({self.left_out_share:.2%}) are left out, because "
                f"their strings are not tokens of this model ({self.tokens}); an exact import keeps them"
            )
        if self.pieces_without_row:
            count = f"{self.pieces_without_row:,} pieces have" if self.pieces_without_row > 1 else "one piece has"
            done.append(f"{count} no row and no part in embeddings, as in the original code")
        case = "texts are lower-cased" if self.lower_case else "texts keep their case"
        done.append(case if self.moses is None else f"texts are tokenized by Moses ({self.moses}); {case}")
        return done


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
    report = ImportReport(
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
    stock = model_files.opens_in_stock(rows.tokenizer)
    directory.save(encoder, output, _card(name or Path(output).name, report, source.path.name, stock), overwrite)
    return report


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


def _card(name: str, report: ImportReport, file: str, stock: bool) -> str:
    tokens = _TOKENS[report.tokens]
    paper = _SP if report.tokens in ("word", "trigram") else _PAPER
    digests = [(f"`{one_line(file, 200).replace('`', chr(39))}`", f"`{report.digest}`")]
    origin = blocks(
        _ORIGIN.format(version=installed_version(), paper=paper), markdown_table(("file", "SHA-256"), digests, left=2)
    )
    imported = "\n".join(f"- {sentence[0].upper()}{sentence[1:]}." for sentence in report.sentences())
    return render(
        Card(
            name=one_line(name, 100),
            summary=f"Sentence embeddings: the mean of {tokens} embeddings, {report.dimension} components, compared by "
            "cosine.",
            stock=stock,
            network="static-embeddings",
            note="" if stock else "No other reader splits texts in this way.",
            licence="other",
            licence_name="terms-of-the-authors-of-the-checkpoint",
            terms=_TERMS,
            sections=(("Where it comes from", origin), ("What was imported", imported)),
        )
    )
