"""The page: a picker of models above four tabs."""

from __future__ import annotations

import inspect
from typing import Any

from st_paragram.tools.demo_page import alignment_tab, nearest_tab, sentences_tab, style_tab
from st_paragram.tools.demo_page.answers import as_message
from st_paragram.tools.demo_page.gradio_package import gradio
from st_paragram.tools.demo_page.html_parts import paragraph
from st_paragram.tools.demo_page.models import Models, languages_of
from st_paragram.tools.demo_page.tab import Page

TITLE = "Sentence embeddings"
_INTRODUCTION = (
    "A model turns every sentence into a vector, and the cosine of two vectors says how alike the sentences are in "
    "meaning: 1 for the same, about 0 for sentences that have nothing to do with each other. All work is done on the "
    "machine that this page comes from."
)


def build_page(models: Models) -> Any:  # noqa: ANN401 - Gradio's Blocks
    """The page as Gradio's `Blocks`; the first model is read at once.

    Raises:
        MissingExtraError: Gradio is not installed.
        ModelDirectoryError: the first model cannot be read.
    """
    package = gradio()
    label = models.labels[0]
    languages = style_tab.written_languages(models.model(label))
    with package.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(60, 60)) as blocks:
        package.Markdown(f"# {TITLE}\n\n{_INTRODUCTION}")
        picker = package.Dropdown(models.labels, value=label, label="Model", filterable=False, elem_id="model")
        note = package.HTML(_note(models, label), elem_id="model-note", elem_classes="sp-result")
        page = Page(package, models, picker)
        with package.Tabs(**_wrapped(package.Tabs)):
            with package.Tab("Two sentences"):
                sentences_tab.build(page)
            with package.Tab("Nearest sentences"):
                nearest_tab.build(page)
            with package.Tab("Align two texts"):
                alignment_tab.build(page)
            with package.Tab("Style transfer", visible=bool(languages)) as tab:
                language = style_tab.build(page, languages)
        page.event(picker.change, lambda picked: _picked(page, picked), picker, [note, tab, language])
    blocks.queue(api_open=False, max_size=32)
    return blocks


def _wrapped(tabs: type) -> dict[str, str]:
    """On a narrow screen tabs go on in a second row, where this Gradio can do that, and not into a menu."""
    return {"overflow_behavior": "wrap"} if "overflow_behavior" in inspect.signature(tabs).parameters else {}


def _picked(page: Page, label: str) -> tuple[str, Any, Any]:
    """What changes when a model is picked: the note, whether there is the tab of styles, and its languages."""
    package = page.gradio
    try:
        languages = style_tab.written_languages(page.models.model(label))
        note = _note(page.models, label)
    except Exception as error:
        return as_message(error), package.Tab(visible=False), package.Radio(choices=[])
    first = languages[0] if languages else None
    return note, package.Tab(visible=bool(languages)), package.Radio(choices=languages, value=first)


def _note(models: Models, label: str) -> str:
    """What should be known of a model: its size, and how it reads texts."""
    model = models.model(label)
    size = f"Embeddings of {model.get_embedding_dimension():,} components."
    if languages := languages_of(model):
        size += (
            " The model has a vocabulary of each of its languages: the first field of a tab is read as "
            f"{languages[0]}, the second as {languages[1]}."
        )
    return paragraph(size)
