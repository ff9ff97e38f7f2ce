"""The tab "Align two texts": which sentences of two short texts say the same."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.errors import SettingsError
from st_paragram.tools.alignment.alignment import Block, align
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.demo_page.example_texts import FIRST_TEXT, SECOND_TEXT
from st_paragram.tools.demo_page.html_parts import number, paragraph, summary, table
from st_paragram.tools.demo_page.limits import TEXT_SENTENCES, checked_text
from st_paragram.tools.demo_page.models import Models, languages_of
from st_paragram.tools.demo_page.sentence_ends import line_sentences, split_sentences
from st_paragram.tools.demo_page.tab import Page

LINES, MARKS = "Each line is a sentence", "Cut after full stops, question marks and exclamation marks"
NOTHING = "–"  # a dash, where there is no sentence

_NOTE = (
    "The score sets the cosine of two sentences against the cosines of their neighbours: above 1 they are more alike "
    "than their surroundings are. A sentence that fits nowhere has a dash beside it."
)


def align_html(models: Models, label: str, first: str, second: str, cut: str) -> str:
    """The tab's answer.

    Raises:
        ParagramError: a text or the model are refused, or faiss is not installed.
    """
    if cut not in (LINES, MARKS):
        raise SettingsError("Please choose how the texts are cut into sentences.")
    split = line_sentences if cut == LINES else split_sentences
    texts = [checked_text(split(text or ""), name) for text, name in ((first, "first"), (second, "second"))]
    model = models.model(label)
    if languages := languages_of(model):
        seen = f"This model reads {languages[0]} and {languages[1]} with a vocabulary of each"
        raise SettingsError(f"{seen}, and an alignment needs a model that reads both texts alike. Please pick another.")
    embed = lambda given: model.encode(list(given), show_progress_bar=False)  # noqa: E731 - too short for a name
    blocks = align(texts[0], texts[1], embed, AlignmentSettings(with_skipped=True))
    found = sum(bool(block.source and block.target) for block in blocks)
    said = f"{_pairs(found)} in texts of {len(texts[0]):,} and {len(texts[1]):,} sentences."
    rows = [_row(block, texts) for block in blocks]
    shown = table("The aligned texts", ("First text", "Second text", "Score"), rows, numeric=(2,))
    return summary(said) + shown + paragraph(_NOTE)


def _pairs(count: int) -> str:
    return "1 pair was found" if count == 1 else f"{count:,} pairs were found"


def _row(block: Block, texts: Sequence[Sequence[str]]) -> tuple[str, str, str]:
    """Both sides of a block; a score only where there are both."""
    first, second = (
        " ".join(text[row] for row in rows) for text, rows in zip(texts, (block.source, block.target), strict=True)
    )
    return first or NOTHING, second or NOTHING, number(block.score, 2) if first and second else NOTHING


def build(page: Page) -> None:
    """Put the tab's fields on the page."""
    with page.gradio.Row():
        first = page.text("First text", FIRST_TEXT, 6, max_lines=12, elem_id="first-text")
        second = page.text("Second text, in the same order", SECOND_TEXT, 6, max_lines=12, elem_id="second-text")
    label = f"How the texts are cut into sentences (at most {TEXT_SENTENCES} each)"
    cut = page.gradio.Radio([LINES, MARKS], value=LINES, label=label, elem_id="cut")
    button = page.button("Align the texts", "align")
    fields = [first, second, cut]
    page.result("align-result", lambda *given: align_html(page.models, *given), button, fields)
