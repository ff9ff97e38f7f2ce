"""The tab "Two sentences": their cosine, and what the parts of each contribute to it."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.tools.demo_page.comparison import Comparison, Part, compare
from st_paragram.tools.demo_page.html_parts import chips, folded, number, paragraph, signed, summary, table
from st_paragram.tools.demo_page.limits import checked_sentence
from st_paragram.tools.demo_page.models import Models
from st_paragram.tools.demo_page.tab import Page

FIRST, SECOND = "Where can I buy a ticket for the train?", "¿Dónde se compran los billetes de tren?"

_EXACT = (
    "The model takes the mean of a vector for each piece, so the cosine is exactly the sum of what the pieces "
    "contribute. Blue pieces (+) draw the sentences together, orange pieces (−) draw them apart."
)
_LEFT_OUT = (
    "In this kind of model pieces depend on each other, so the cosine has no exact parts. The number of a word is by "
    "how much the cosine falls when that word is left out. Blue words (+) draw the sentences together, orange words "
    "(−) draw them apart. These numbers do not sum to the cosine."
)


def compare_html(models: Models, label: str, first: str, second: str) -> str:
    """The tab's answer.

    Raises:
        ParagramError: a sentence is refused, or the model.
    """
    sentences = (checked_sentence(first, "first sentence"), checked_sentence(second, "second sentence"))
    found = compare(models.model(label), *sentences)
    both = list(zip(("First sentence", "Second sentence"), (found.first, found.second), strict=True))
    lists = "".join(chips(name, parts) for name, parts in both)
    tables = "".join(_table(name, parts, found) for name, parts in both)
    value = f"Cosine: <strong>{number(found.cosine)}</strong>"
    return "".join(
        (
            summary(value),
            lists,
            paragraph(_EXACT if found.exact else _LEFT_OUT),
            folded("The same numbers as tables", tables),
        )
    )


def _table(name: str, parts: Sequence[Part], found: Comparison) -> str:
    rows = [(part.text, signed(part.contribution, 4)) for part in parts]
    what = "Piece" if found.exact else "Word left out"
    if found.exact:
        rows.append(("Sum, which is the cosine", number(sum(part.contribution for part in parts), 4)))
    caption = f"{name}: contributions to the cosine" if found.exact else f"{name}: by how much the cosine falls"
    return table(caption, (what, "Contribution"), rows, numeric=(1,))


def build(page: Page) -> None:
    """Put the tab's fields on the page."""
    with page.gradio.Row():
        first = page.text("First sentence", FIRST, elem_id="first-sentence")
        second = page.text("Second sentence", SECOND, elem_id="second-sentence")
    button = page.button("Compare the sentences", "compare")
    page.result("compare-result", lambda *given: compare_html(page.models, *given), button, [first, second])
