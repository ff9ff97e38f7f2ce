"""The tabs of the page: two sentences, the nearest sentences of a list, the alignment of two texts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from st_paragram.errors import ParagramError, SettingsError
from st_paragram.tools.alignment.align import Block, align
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.demo_page.appearance import (
    chips,
    escaped,
    folded,
    message,
    number,
    paragraph,
    signed,
    summary,
    table,
)
from st_paragram.tools.demo_page.comparison import Comparison, Part, compare, languages_of, nearest
from st_paragram.tools.demo_page.models import Models
from st_paragram.tools.demo_page.texts import (
    FIRST_TEXT,
    LIST,
    LIST_BYTES,
    LIST_LINES,
    QUERY,
    SECOND_TEXT,
    TEXT_SENTENCES,
    checked_lines,
    checked_sentence,
    checked_text,
    line_sentences,
    read_upload,
    split_sentences,
)

logger = logging.getLogger(__name__)
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
MOST = 10
LINES, MARKS = "Each line is a sentence", "Cut after full stops, question marks and exclamation marks"
NOTHING = "–"  # a dash, where there is no sentence

_ALIGNED = (
    "The score sets the cosine of two sentences against the cosines of their neighbors: above 1 they are "
    "more alike than their surroundings are. A sentence without a match has a dash."
)


@dataclass(frozen=True)
class Page:
    """The page that tabs are put on.

    Attributes:
        gradio: The package.
        models: That can be picked.
        picker: The field that names the model.
    """

    gradio: ModuleType
    models: Models
    picker: Any

    def text(self, label: str, value: str, lines: int = 2, **more: Any) -> Any:  # noqa: ANN401 - Gradio's
        """A field for text with its label."""
        return self.gradio.Textbox(label=label, value=value, lines=lines, min_width=260, **more)

    def button(self, label: str, elem_id: str) -> Any:  # noqa: ANN401 - Gradio's
        """The button that starts a tab's work."""
        return self.gradio.Button(label, variant="primary", elem_id=elem_id)

    def result(self, elem_id: str, answer: Callable[..., str], button: Any, fields: Sequence[Any]) -> Any:  # noqa: ANN401
        """Where a tab's answer appears, when its button is pressed.

        Args:
            elem_id: its id in HTML.
            answer: gives HTML of the picked model's label and what the fields hold.
            button: that is pressed.
            fields: in the order of the function's arguments.
        """
        place = self.gradio.HTML(elem_id=elem_id, elem_classes="sp-result")
        self.event(button.click, answering(answer), [self.picker, *fields], place)
        return place

    def event(self, on: Any, function: Callable[..., Any], inputs: Any, outputs: Any) -> Any:  # noqa: ANN401 - Gradio's
        """Call a function on an event: one at a time, by the page alone."""
        return on(
            function,
            inputs,
            outputs,
            concurrency_limit=1,
            concurrency_id="model",
            api_visibility="private",
            show_progress="minimal",
        )


def as_message(error: Exception) -> str:
    """What to show of an error: what was raised on purpose as it is, of others only that something went wrong."""
    if isinstance(error, ParagramError):
        return message(error)
    logger.error("the demo page: %s", type(error).__name__, exc_info=error)
    return message("Something went wrong; see the terminal that started the page.")


def answering(answer: Callable[..., str]) -> Callable[..., str]:
    """A function that gives HTML, as one that gives a message in place of an error."""

    def answered(*given: Any) -> str:  # noqa: ANN401 - whatever the page's fields hold
        try:
            return answer(*given)
        except Exception as error:
            return as_message(error)

    return answered


def build(page: Page) -> None:
    """Put the tabs on the page."""
    for name, fields in (
        ("Two sentences", _build_sentences),
        ("Nearest sentences", _build_nearest),
        ("Align two texts", _build_alignment),
    ):
        with page.gradio.Tab(name):
            fields(page)


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


def _build_sentences(page: Page) -> None:
    with page.gradio.Row():
        first = page.text("First sentence", FIRST, elem_id="first-sentence")
        second = page.text("Second sentence", SECOND, elem_id="second-sentence")
    button = page.button("Compare the sentences", "compare")
    page.result("compare-result", lambda *given: compare_html(page.models, *given), button, [first, second])


def nearest_html(models: Models, label: str, query: str, text: str) -> str:
    """The tab's answer.

    Raises:
        ParagramError: the sentence, the list or the model are refused.
    """
    query, lines = checked_sentence(query, "sentence"), checked_lines(text)
    hits = nearest(models.model(label), query, lines, MOST)
    rows = [(place, number(hit.cosine), hit.sentence, hit.line) for place, hit in enumerate(hits, 1)]
    said = f"The nearest of {len(lines):,} sentences: <strong><bdi>{escaped(hits[0].sentence)}</bdi></strong>"
    caption = f"The {len(hits)} nearest sentences, by their cosine with “{query}”"
    head = ("Place", "Cosine", "Sentence", "Line")
    return summary(said) + table(caption, head, rows, numeric=(0, 1, 3))


def upload_list(path: str | None, text: str) -> tuple[str, str]:
    """The uploaded list in place of the old one, or the old one and a message; the file is removed either way."""
    if not path:
        return text, as_message(ValueError("no file"))
    try:
        uploaded = read_upload(path)
    except Exception as error:
        return text, as_message(error)
    return uploaded, summary(
        f"The list is now that of the file. Its number of sentences: {uploaded.count(chr(10)) + 1:,}."
    )


def _build_nearest(page: Page) -> None:
    query = page.text("Sentence to look for", QUERY, elem_id="query")
    info = f"One sentence per line, in any language that the model knows: at most {LIST_LINES:,} lines."
    lines = page.text("List of sentences", LIST, 8, max_lines=12, info=info, elem_id="list")
    with page.gradio.Row():
        upload = page.gradio.UploadButton(
            f"Upload a list (.txt, at most {LIST_BYTES >> 20} MB)", file_types=[".txt"], elem_id="upload"
        )
        button = page.button("Find the nearest sentences", "find")
    answer = page.result("nearest-result", lambda *given: nearest_html(page.models, *given), button, [query, lines])
    page.event(upload.upload, upload_list, [upload, lines], [lines, answer])


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
    blocks = align(texts[0], texts[1], embed, AlignmentSettings(margin=Margin.RATIO, with_skipped=True))
    found = sum(bool(block.source and block.target) for block in blocks)
    said = f"{_pairs(found)} in texts of {len(texts[0]):,} and {len(texts[1]):,} sentences."
    rows = [_row(block, texts) for block in blocks]
    shown = table("The aligned texts", ("First text", "Second text", "Score"), rows, numeric=(2,))
    return summary(said) + shown + paragraph(_ALIGNED)


def _pairs(count: int) -> str:
    return "1 pair was found" if count == 1 else f"{count:,} pairs were found"


def _row(block: Block, texts: Sequence[Sequence[str]]) -> tuple[str, str, str]:
    """Both sides of a block; a score only where there are both."""
    first, second = (
        " ".join(text[row] for row in rows) for text, rows in zip(texts, (block.source, block.target), strict=True)
    )
    return first or NOTHING, second or NOTHING, number(block.score, 2) if first and second else NOTHING


def _build_alignment(page: Page) -> None:
    with page.gradio.Row():
        first = page.text("First text", FIRST_TEXT, 6, max_lines=12, elem_id="first-text")
        second = page.text("Second text, in the same order", SECOND_TEXT, 6, max_lines=12, elem_id="second-text")
    label = f"How the texts are cut into sentences (at most {TEXT_SENTENCES} each)"
    cut = page.gradio.Radio([LINES, MARKS], value=LINES, label=label, elem_id="cut")
    button = page.button("Align the texts", "align")
    fields = [first, second, cut]
    page.result("align-result", lambda *given: align_html(page.models, *given), button, fields)
