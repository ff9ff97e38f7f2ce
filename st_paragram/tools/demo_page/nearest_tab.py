"""The tab "Nearest sentences": those of a list that are most like a sentence, whatever their language."""

from __future__ import annotations

from st_paragram.tools.demo_page.answers import as_message
from st_paragram.tools.demo_page.example_texts import LIST, QUERY
from st_paragram.tools.demo_page.html_parts import escaped, number, summary, table
from st_paragram.tools.demo_page.limits import LIST_BYTES, LIST_LINES, checked_lines, checked_sentence
from st_paragram.tools.demo_page.models import Models
from st_paragram.tools.demo_page.nearest import nearest
from st_paragram.tools.demo_page.tab import Page
from st_paragram.tools.demo_page.uploads import read_upload

MOST = 10


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


def build(page: Page) -> None:
    """Put the tab's fields on the page."""
    query = page.text("Sentence to look for", QUERY, elem_id="query")
    info = f"One sentence a line, in any language that the model knows: at most {LIST_LINES:,} lines."
    lines = page.text("List of sentences", LIST, 8, max_lines=12, info=info, elem_id="list")
    with page.gradio.Row():
        upload = page.gradio.UploadButton(
            f"Upload a list (.txt, at most {LIST_BYTES >> 20} MB)", file_types=[".txt"], elem_id="upload"
        )
        button = page.button("Find the nearest sentences", "find")
    answer = page.result("nearest-result", lambda *given: nearest_html(page.models, *given), button, [query, lines])
    page.event(upload.upload, upload_list, [upload, lines], [lines, answer])
