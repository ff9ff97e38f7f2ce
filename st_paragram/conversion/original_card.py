"""The model card of an imported checkpoint: where it comes from, and whose terms hold."""

from __future__ import annotations

from st_paragram.conversion.original_report import ImportReport
from st_paragram.core.damage import printable
from st_paragram.core.tables import markdown_table
from st_paragram.core.version import installed_version
from st_paragram.learning.models.card import Card, blocks, render

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
    digests = [(f"`{printable(file, 200).replace('`', chr(39))}`", f"`{report.digest}`")]
    origin = blocks(
        _ORIGIN.format(version=installed_version(), paper=paper), markdown_table(("file", "SHA-256"), digests, left=2)
    )
    imported = "\n".join(f"- {sentence[0].upper()}{sentence[1:]}." for sentence in report.sentences())
    card = Card(
        name=printable(name, 100),
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
