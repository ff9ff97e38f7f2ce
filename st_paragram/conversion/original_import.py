"""Import a checkpoint of the original P-SP or SP code as a model directory.

The original code numbers strings, not sentencepiece ids, so rows are looked up by the surface of a
token: the piece, lower-cased again, between white space.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from st_paragram.conversion.original_checkpoint import OriginalCheckpoint, read_checkpoint
from st_paragram.core.extras import installed_version
from st_paragram.core.formatting import counted, markdown_table
from st_paragram.core.model_directory.card import Card, blocks, render
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.core.model_directory.model_files import opens_in_stock
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer
from st_paragram.core.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer
from st_paragram.core.tokenizers.string_lists import write_strings
from st_paragram.core.tokenizers.words import Splitter, WordTokenizer
from st_paragram.errors import ModelDirectoryError, one_line, refused, short
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding

# share of the pieces with a row: nearly all if model and checkpoint belong together
_LEAST_SHARE = 0.5
_NO_ROW = -1
_TERMS = """\
**License and terms are those of the authors of the checkpoint.** st_paragram's license does not
cover these weights; check what the authors allow before you share them."""
_ORIGIN = """\
This model was not trained with st_paragram. It was imported by `st-paragram import` (st_paragram
{version}) from a checkpoint of the original code of {paper}."""
_SP = "SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, ACL 2019)"
_PAPER = "P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022) or its predecessor " + _SP
_TOKENS = {"sentencepiece": "sentencepiece", "word": "word", "trigram": "character trigram"}


@dataclass(frozen=True)
class ImportSettings:
    """Settings of an import; None: as in the checkpoint's arguments.

    Attributes:
        lower_case: Whether texts are lower-cased.
        moses: Language whose Moses rules tokenize texts first; "none": no Moses tokenization.
        segmentation: Word segmentation of Chinese (the original code does it before training and
            scoring).

    Examples:
        >>> from st_paragram import ImportSettings
        >>> ImportSettings(lower_case=True).moses is None
        True
    """

    lower_case: bool | None = None
    moses: str | None = None
    segmentation: Segmentation | str = Segmentation.NONE


@dataclass(frozen=True)
class ImportReport:
    """What was imported, and what was left out."""

    tokens: str  # "sentencepiece", "word" or "trigram"
    dimension: int
    rows: int  # rows of the checkpoint that belong to a string
    left_out: int  # rows that no text reaches in the imported model
    pieces_without_row: int  # pieces dropped when encoding, as in the original code
    lower_case: bool
    moses: str | None  # language of Moses tokenization
    epoch: int | None  # epoch of the checkpoint
    digest: str  # SHA-256 of the checkpoint

    def sentences(self) -> list[str]:
        """Return the report in words."""
        epoch = "" if self.epoch is None else f" of epoch {self.epoch}"
        lines = [f"{self.rows - self.left_out:,} rows{epoch}, {self.dimension:,} dimensions"]
        if self.left_out:
            share = self.left_out / self.rows
            lines.append(
                f"{self.left_out:,} of {self.rows:,} rows ({share:.2%}) are left out, because"
                f" their strings are not tokens of this model ({self.tokens})"
            )
        if self.pieces_without_row:
            count = counted(self.pieces_without_row, "token")
            lines.append(f"{count} without a row, dropped when encoding, as in the original code")
        case = "texts are lower-cased" if self.lower_case else "texts keep their case"
        if self.moses is not None:
            case = f"texts are tokenized by Moses ({self.moses}); {case}"
        lines.append(case)
        return lines


def import_checkpoint(
    checkpoint: str | Path,
    output: str | Path,
    sentencepiece: str | Path | None = None,
    settings: ImportSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> ImportReport:
    """Convert a checkpoint to a model directory.

    Args:
        checkpoint: File saved by the original P-SP code (EMNLP 2022) or SP code (ACL 2019).
        output: Output directory.
        sentencepiece: The sentencepiece model that came with the checkpoint; None for words and
            trigrams.
        settings: Settings of the import; by default as in the checkpoint's arguments.
        name: Model name for the card; by default the directory's name.
        overwrite: Replace an existing model directory.

    Raises:
        ModelDirectoryError: The output is refused; the checkpoint is damaged, unsafe or of another
            kind; or the sentencepiece model is not the checkpoint's.
        SettingsError: The sentencepiece model is missing, or the vocabulary cannot be kept.
        MissingExtraError: Moses or jieba is needed but not installed.

    Examples:
        >>> from st_paragram import import_checkpoint
        >>> import_checkpoint("model.pt", "p-sp-authors", "paranmt.model")  # doctest: +SKIP
    """
    settings = settings or ImportSettings()
    check_free(output, overwrite)
    pieces = None
    if sentencepiece is not None:
        with refused(ModelDirectoryError, sentencepiece, "cannot be read", "check the path"):
            pieces = Path(sentencepiece).read_bytes()
    source = read_checkpoint(checkpoint)
    _check_kind(source, pieces is not None)
    arguments = source.arguments
    lower_case = settings.lower_case
    if lower_case is None:
        lower_case = bool(arguments.get("lower_case", True))
    # The original evaluation uses Moses' English rules, whatever the text's language.
    moses = settings.moses or ("en" if arguments.get("tokenize") else None)
    if moses == "none":
        moses = None
    trigrams = bool(arguments.get("ngrams"))
    if moses and (trigrams or pieces is not None):
        raise ModelDirectoryError(
            f"{source.path}: texts are tokenized by Moses first, which is only supported for"
            " words; give --moses none to skip Moses"
        )
    if pieces is not None:
        tokens = _pieces(source, pieces, lower_case, settings.segmentation)
    elif trigrams:
        tokens = _trigrams(source, lower_case)
    else:
        tokens = _words(source, lower_case, moses)

    table = source.table[tokens.rows]
    table[np.array(tokens.rows) == _NO_ROW] = 0
    dropout = arguments.get("dropout")
    if not isinstance(dropout, float) or not 0 <= dropout < 1:
        dropout = 0.0
    embedding = token_embedding(tokens.tokenizer, weights=table, dropout=dropout)
    report = ImportReport(
        tokens=tokens.tokenizer.kind,
        dimension=table.shape[1],
        rows=len(source.vocabulary) - 1,
        left_out=tokens.left_out,
        pieces_without_row=tokens.pieces_without_row,
        lower_case=lower_case,
        moses=moses,
        epoch=source.epoch,
        digest=source.digest,
    )
    stock = opens_in_stock(tokens.tokenizer)
    card = _card(name or Path(output).name, report, file=source.path.name, stock=stock)
    load_save.save(pipeline(embedding, device="cpu"), output, card, overwrite)
    return report


def _check_kind(source: OriginalCheckpoint, pieces: bool) -> None:
    """Refuse models of other kinds, and a missing or superfluous sentencepiece model."""
    arguments = source.arguments
    supported = {"pool": ("mean",), "zero_unk": (1,), "share_vocab": (1,), "ngrams": (None, 0, 3)}
    for name, values in supported.items():
        value = arguments.get(name, values[0])
        if value not in values:
            raise ModelDirectoryError(
                f"{source.path}: its args have {name}={short(value)}, but only checkpoints with"
                f" {name}={values[-1]!r} can be imported"
            )
    trigrams = bool(arguments.get("ngrams"))
    if trigrams and pieces:
        raise ModelDirectoryError(
            f"{source.path}: a character trigram model; leave out the sentencepiece file"
        )
    model = arguments.get("sp_model")
    if model and not trigrams and not pieces:
        raise ModelDirectoryError(
            f"{source.path}: a model of sentencepiece tokens (its args name {short(model)}); also"
            " give that file"
        )


@dataclass(frozen=True)
class _Tokens:
    """The tokens of the imported model."""

    tokenizer: Tokenizer
    rows: list[int]  # row of each id in the checkpoint, or `_NO_ROW`
    left_out: int  # rows that no text reaches
    pieces_without_row: int = 0


def _pieces(
    source: OriginalCheckpoint, model: bytes, lower_case: bool, segmentation: Segmentation | str
) -> _Tokens:
    """Look up the pieces of a sentencepiece model."""
    tokenizer = SentencePieceTokenizer(model, lower_case, segmentation)
    rows = [_NO_ROW] * len(tokenizer)
    without_row = []
    for number in range(len(tokenizer)):
        piece = tokenizer.piece(number)
        if piece is None:
            continue
        surface = piece.lower().strip() if lower_case else piece.strip()
        if surface in source.vocabulary:
            rows[number] = source.vocabulary[surface]
        else:
            without_row.append(number)
    count = len(rows) - rows.count(_NO_ROW)
    pieces = count + len(without_row)
    if count < _LEAST_SHARE * pieces or not count:
        raise ModelDirectoryError(
            f"{source.path}: has rows for {count:,} of the {pieces:,} tokens of the"
            " sentencepiece model, so it was trained with another model; give the model that came"
            " with it"
        )
    left_out = set(source.vocabulary.values()) - {source.unknown_row} - set(rows)
    rows[tokenizer.unknown_id] = source.unknown_row
    tokenizer = SentencePieceTokenizer(model, lower_case, segmentation, without_row)
    return _Tokens(tokenizer, rows, len(left_out), len(without_row))


def _trigrams(source: OriginalCheckpoint, lower_case: bool) -> _Tokens:
    """Keep the windows of three characters."""
    strings = source.strings()
    kept = [string for string in strings if len(string) == 3]
    tokenizer = CharacterTrigramTokenizer(write_strings(kept), lower_case)
    return _Tokens(tokenizer, source.rows_of(kept), len(strings) - len(kept))


def _words(source: OriginalCheckpoint, lower_case: bool, moses: str | None) -> _Tokens:
    """Keep all strings, and count those that are not a single word for the tokenizer."""
    strings = source.strings()
    splitter = Splitter.MOSES if moses else Splitter.REGEX
    tokenizer = WordTokenizer(write_strings(strings), lower_case, splitter, moses or "en")
    ids, offsets = tokenizer.encode(strings)
    first_ids = ids[offsets[:-1]]
    reached = (np.diff(offsets) == 1) & (first_ids == np.arange(len(strings)))
    return _Tokens(tokenizer, source.rows_of(strings), len(strings) - int(reached.sum()))


def _card(name: str, report: ImportReport, file: str, stock: bool) -> str:
    """Return the text of the model card."""
    paper = _SP if report.tokens in ("word", "trigram") else _PAPER
    file_name = one_line(file, 200).replace("`", "'")
    digests = [(f"`{file_name}`", f"`{report.digest}`")]
    origin = blocks(
        _ORIGIN.format(version=installed_version(), paper=paper),
        markdown_table(("file", "SHA-256"), digests, left=2),
    )
    imported = [f"- {line[0].upper()}{line[1:]}." for line in report.sentences()]
    card = Card(
        name=one_line(name, 100),
        summary=(
            f"Sentence embeddings: the mean of {_TOKENS[report.tokens]} embeddings,"
            f" {report.dimension} dimensions, compared by cosine."
        ),
        stock=stock,
        network="static-embeddings",
        note="" if stock else "Other libraries do not split texts in this way.",
        license="other",
        license_name="terms-of-the-authors-of-the-checkpoint",
        terms=_TERMS,
        sections=(("Where it comes from", origin), ("What was imported", "\n".join(imported))),
    )
    return render(card)
