"""Import a checkpoint of the original P-SP or SP code as a model directory.

The original code numbers strings, not sentencepiece ids, so rows are looked up by the surface of a
token: the piece, lower-cased again, between white space (see `core/tokenizers/original.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from st_paragram.conversion.original_checkpoint import UNKNOWN, OriginalCheckpoint, read_checkpoint
from st_paragram.core.extras import installed_version
from st_paragram.core.formatting import counted, markdown_table
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.core.model_directory.model_files import opens_in_stock
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer
from st_paragram.core.tokenizers.original import OriginalTokenizer, write_content
from st_paragram.core.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer
from st_paragram.core.tokenizers.string_lists import write_strings
from st_paragram.core.tokenizers.words import Splitter, WordTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, one_line, refused, short
from st_paragram.learning.models import load_save
from st_paragram.learning.models.card import Card, blocks, render
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding

# share of the pieces with a row: nearly all if model and checkpoint belong together
_LEAST_SHARE = 0.5
_NO_ROW = -1
_TERMS = """\
**License and terms are those of the authors of the checkpoint.** st_paragram's license does not cover these
weights; check what the authors allow before you share them."""
_ORIGIN = """\
This model was not trained with st_paragram. It was imported by `st-paragram import` (st_paragram {version}) from a
checkpoint of the original code of {paper}."""
_SP = "SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, ACL 2019)"
_PAPER = "P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022) or its predecessor " + _SP
_TOKENS = {
    "sentencepiece": "sentencepiece",
    "word": "word",
    "trigram": "character trigram",
    "original": "token",
}


@dataclass(frozen=True)
class ImportSettings:
    """Settings of an import; None: as in the checkpoint's arguments.

    Attributes:
        exact: Also keep the rows of strings that are not pieces, in a model that only st_paragram
            can read.
        lower_case: Whether texts are lower-cased.
        moses: Language whose Moses rules tokenize texts first; "none": no Moses tokenization.
        segmentation: Word segmentation of Chinese (the original code does it before training and
            scoring).

    Example:
        >>> from st_paragram import ImportSettings
        >>> ImportSettings(lower_case=True, moses="en").exact
        False
    """

    exact: bool = False
    lower_case: bool | None = None
    moses: str | None = None
    segmentation: Segmentation | str = Segmentation.NONE


@dataclass(frozen=True)
class ImportReport:
    """What was imported, and what was left out."""

    tokens: str  # "sentencepiece", "word" or "trigram", or "original" for an exact import
    dimension: int
    rows: int  # rows of the checkpoint that belong to a string
    left_out: int  # rows that no text reaches in the imported model
    pieces_without_row: int  # pieces dropped when encoding, as in the original code
    lower_case: bool
    moses: str | None  # language of Moses tokenization
    epoch: int | None  # epoch of the checkpoint
    digest: str  # SHA-256 of the checkpoint

    @property
    def left_out_share(self) -> float:
        """The share of rows that no text reaches, 0 .. 1."""
        return self.left_out / self.rows

    def sentences(self) -> list[str]:
        """Return the report in words."""
        epoch = "" if self.epoch is None else f" of epoch {self.epoch}"
        done = [f"{self.rows - self.left_out:,} rows{epoch}, {self.dimension:,} dimensions"]
        if self.left_out:
            done.append(
                f"{self.left_out:,} of {self.rows:,} rows ({self.left_out_share:.2%}) are left out,"
                f" because their strings are not tokens of this model ({self.tokens}); an exact"
                " import keeps them"
            )
        if self.pieces_without_row:
            count = counted(self.pieces_without_row, "piece")
            done.append(f"{count} without a row, dropped when encoding, as in the original code")
        case = "texts are lower-cased" if self.lower_case else "texts keep their case"
        done.append(
            case if self.moses is None else f"texts are tokenized by Moses ({self.moses}); {case}"
        )
        return done


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

    Example:
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
    trigrams = bool(arguments.get("ngrams"))
    lower_case = (
        bool(arguments.get("lower_case", True))
        if settings.lower_case is None
        else settings.lower_case
    )
    # The original evaluation uses Moses' English rules, whatever the text's language.
    moses = settings.moses or ("en" if arguments.get("tokenize") else None)
    moses = None if moses == "none" else moses
    if moses and not settings.exact and (trigrams or pieces is not None):
        raise ModelDirectoryError(
            f"{source.path}: texts are tokenized by Moses first, which only an exact import"
            " supports; give --exact, or --moses none to skip Moses"
        )
    strings = sorted(source.vocabulary.keys() - {UNKNOWN}, key=source.vocabulary.__getitem__)
    if not strings:
        raise SettingsError(
            f"{source.path}: the vocabulary has only {UNKNOWN}; give another checkpoint"
        )

    tokenizer: Tokenizer
    dropped: list[int] = []
    known, left_out, segmentation = len(strings), 0, settings.segmentation
    if pieces is not None:
        tokenizer = SentencePieceTokenizer(pieces, lower_case, segmentation)
        rows, dropped = _rows_of_pieces(source, tokenizer, settings.exact)
    if settings.exact:
        tokenizer = OriginalTokenizer(
            write_content(strings, pieces), lower_case, trigrams, moses, segmentation
        )
    elif pieces is not None:
        tokenizer = SentencePieceTokenizer(pieces, lower_case, segmentation, dropped)
        reachable = {*source.vocabulary.values()} - {source.unknown_row}
        known, left_out = len(reachable), len(reachable - {*rows})
    elif trigrams:
        strings = [string for string in strings if len(string) == 3]
        tokenizer, left_out = (
            CharacterTrigramTokenizer(write_strings(strings), lower_case),
            known - len(strings),
        )
    else:
        splitter = Splitter.MOSES if moses else Splitter.REGEX
        tokenizer = WordTokenizer(write_strings(strings), lower_case, splitter, moses or "en")
        ids, offsets = tokenizer.encode(strings)
        alone = np.diff(offsets) == 1  # strings that are also a single word here
        left_out = known - int((ids[offsets[:-1]][alone] == np.arange(known)[alone]).sum())
    if settings.exact or pieces is None:
        rows = [*map(source.vocabulary.__getitem__, strings), source.unknown_row]

    table = source.table[rows]
    table[np.array(rows) == _NO_ROW] = 0
    dropout = arguments.get("dropout")
    dropout = dropout if isinstance(dropout, float) and 0 <= dropout < 1 else 0.0
    encoder = pipeline(token_embedding(tokenizer, weights=table, dropout=dropout), device="cpu")
    report = ImportReport(
        tokenizer.kind,
        table.shape[1],
        known,
        left_out,
        len(dropped),
        lower_case,
        moses,
        source.epoch,
        source.digest,
    )
    card = _card(name or Path(output).name, report, source.path.name, opens_in_stock(tokenizer))
    load_save.save(encoder, output, card, overwrite)
    return report


def _check_kind(source: OriginalCheckpoint, pieces: bool) -> None:
    """Refuse models that do not average rows of one table, and a missing or superfluous
    sentencepiece model.
    """
    arguments = source.arguments
    wrong = {
        "pool": (
            arguments.get("pool", "mean") != "mean",
            "only the mean of embeddings can be imported",
        ),
        "zero_unk": (
            not arguments.get("zero_unk", 1),
            "only models that drop unknown tokens can be imported",
        ),
        "share_vocab": (
            not arguments.get("share_vocab", 1),
            "a model with a table for each language is not supported",
        ),
        "ngrams": (
            arguments.get("ngrams") not in (None, 0, 3),
            "only windows of 3 characters can be imported",
        ),
    }
    for name, (present, reason) in wrong.items():
        if present:
            raise ModelDirectoryError(
                f"{source.path}: its args have {name}={short(arguments.get(name))}; {reason}"
            )
    named, trigrams = arguments.get("sp_model"), bool(arguments.get("ngrams"))
    if trigrams and pieces:
        raise ModelDirectoryError(
            f"{source.path}: a character trigram model; leave out the sentencepiece file"
        )
    if named and not trigrams and not pieces:
        seen = f"a model of sentencepiece pieces (its args name {short(named)})"
        raise ModelDirectoryError(f"{source.path}: {seen}; also give that file")


def _rows_of_pieces(
    source: OriginalCheckpoint, tokenizer: SentencePieceTokenizer, exact: bool
) -> tuple[list[int], list[int]]:
    """Return the row of each id, including the unknown id, or `_NO_ROW`; and the ids of pieces
    without a row.
    """
    cased = str.lower if tokenizer.lower_case else str
    rows, missing, found = [_NO_ROW] * len(tokenizer), [], 0
    for each in range(len(tokenizer)):
        if (piece := tokenizer.piece(each)) is None:
            continue
        known = [
            source.vocabulary[part] for part in cased(piece).split() if part in source.vocabulary
        ]
        if len(known) > 1 and not exact:
            raise ModelDirectoryError(
                f"{source.path}: the piece {piece!r} matches two rows; give --exact"
            )
        if known:
            rows[each] = known[0]
            found += 1
        else:
            missing.append(each)
    if found < _LEAST_SHARE * (found + len(missing)) or not found:
        raise ModelDirectoryError(
            f"{source.path}: has rows for {found:,} of the {found + len(missing):,} pieces of the"
            " sentencepiece model, so it was trained with another model; give the model that came"
            " with it"
        )
    rows[tokenizer.unknown_id] = source.unknown_row
    return rows, missing


def _card(name: str, report: ImportReport, file: str, stock: bool) -> str:
    paper = _SP if report.tokens in ("word", "trigram") else _PAPER
    digests = [(f"`{one_line(file, 200).replace('`', chr(39))}`", f"`{report.digest}`")]
    origin = blocks(
        _ORIGIN.format(version=installed_version(), paper=paper),
        markdown_table(("file", "SHA-256"), digests, left=2),
    )
    imported = "\n".join(
        f"- {sentence[0].upper()}{sentence[1:]}." for sentence in report.sentences()
    )
    return render(
        Card(
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
            sections=(("Where it comes from", origin), ("What was imported", imported)),
        )
    )
