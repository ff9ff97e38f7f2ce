"""What an import has done, for the command line, and the card of the model: where it comes from, whose terms hold."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.core.tables import markdown_table
from st_paragram.core.version import installed_version
from st_paragram.errors import one_line
from st_paragram.learning.models.card import Card, blocks, render


@dataclass(frozen=True)
class ImportReport:
    """What was imported.

    Attributes:
        tokens: "sentencepiece", "word" or "trigram", or "original" for an exact import.
        dimension: components of an embedding.
        rows: of the checkpoint that belong to a string.
        left_out: those of them that no text reaches in the imported model.
        pieces_without_row: pieces that are dropped on encoding, as the original code drops them.
        lower_case: whether the model lower-cases texts.
        moses: language of Moses tokenization before all else, or None.
        epoch: of the checkpoint, or None.
        digest: SHA-256 of the checkpoint.
    """

    tokens: str
    dimension: int
    rows: int
    left_out: int
    pieces_without_row: int
    lower_case: bool
    moses: str | None
    epoch: int | None
    digest: str

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


_TERMS = """\
**Licence and terms are those of the authors of the checkpoint.** st_paragram's own licence does not cover these
weights; look up what the authors allow before you pass them on."""
_ORIGIN = """\
This model was not trained with st_paragram. It was imported by `st-paragram import` (st_paragram {version}) from a
checkpoint of the original code of {paper}."""
_SP = "SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, ACL 2019)"
_PAPER = "P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022) or its predecessor " + _SP
_TOKENS = {"sentencepiece": "sentencepiece", "word": "word", "trigram": "character trigram", "original": "token"}


def imported_card(name: str, report: ImportReport, file: str, stock: bool) -> str:
    """Render the card in Markdown.

    Args:
        name: of the model.
        report: of the import.
        file: name of the checkpoint.
        stock: whether sentence-transformers alone opens the model.
    """
    tokens, dimension = _TOKENS[report.tokens], report.dimension
    paper = _SP if report.tokens in ("word", "trigram") else _PAPER
    digests = [(f"`{one_line(file, 200).replace('`', chr(39))}`", f"`{report.digest}`")]
    origin = blocks(
        _ORIGIN.format(version=installed_version(), paper=paper), markdown_table(("file", "SHA-256"), digests, left=2)
    )
    imported = "\n".join(f"- {sentence[0].upper()}{sentence[1:]}." for sentence in report.sentences())
    card = Card(
        name=one_line(name, 100),
        summary=f"Sentence embeddings: the mean of {tokens} embeddings, {dimension} components, compared by cosine.",
        stock=stock,
        network="static-embeddings",
        note="" if stock else "No other reader splits texts in this way.",
        licence="other",
        licence_name="terms-of-the-authors-of-the-checkpoint",
        terms=_TERMS,
        sections=(("Where it comes from", origin), ("What was imported", imported)),
    )
    return render(card)
