"""The tab "Style transfer": what one sentence means, written as another one is. For generative models.

The demo page builds it for the models that are shown, whichever they are; others have no such tab.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.generation.settings import GenerationSettings
from st_paragram.tools.demo_page.appearance import escaped, number, paragraph, summary, table
from st_paragram.tools.demo_page.comparison import cosine_of
from st_paragram.tools.demo_page.texts import checked_sentence

if TYPE_CHECKING:
    from st_paragram.tools.demo_page.models import Models
    from st_paragram.tools.demo_page.tabs import Page

MEANING, STYLE = "We are late for the train.", "Are you sure that this is the right way, my friend?"
_SETTINGS = GenerationSettings(max_length=100)
_NOTE = (
    "The meaning is read by the model's semantic encoder and the style by the encoder of the language that is written, "
    "so the style must be a sentence of that language; the meaning may be of either language of the model."
)


def written_languages(model: Any) -> list[str]:  # noqa: ANN401 - what `Models` loads
    """Codes of the languages that a model can write in another sentence's style; none for most models."""
    if isinstance(model, Encoder) or not isinstance(
        model, _generation("sentence_transformers_encoder").GenerativeEncoder
    ):
        return []
    return [language for language in model.languages if _can_write(model, language)]


def _generation(module: str) -> Any:  # noqa: ANN401 - a module
    """A module that writes sentences; it needs torch, which this page has only for models that do."""
    return importlib.import_module(f"st_paragram.families.bgt.{module}")


def _can_write(model: Any, language: str) -> bool:  # noqa: ANN401 - a GenerativeEncoder
    try:
        _generation("generation.generate").find_route(model, "transfer", target=language)
    except SettingsError:
        return False
    return True


def transfer_html(models: Models, label: str, meaning: str, style: str, language: str | None) -> str:
    """The tab's answer.

    Raises:
        ParagramError: a sentence is refused, the model cannot write in a style, or not in this language.
    """
    meaning, style = (
        checked_sentence(meaning, "sentence for the meaning"),
        checked_sentence(style, "sentence for the style"),
    )
    model = models.model(label)
    if language not in written_languages(model):
        raise SettingsError("This model cannot write in a style in this language. Please pick another of the list.")
    written = _generation("generation.generate").transfer(model, [meaning], [style], language, _SETTINGS)[0]
    if not written:
        return summary("The model wrote nothing. Please try other sentences.")
    rows = [
        ("the sentence for the meaning", number(cosine_of(model, written, meaning))),
        ("the sentence for the style", number(cosine_of(model, written, style))),
    ]
    said = f"Written: <strong><bdi>{escaped(written)}</bdi></strong>"
    shown = table("Cosine of what was written with", ("Sentence", "Cosine"), rows, numeric=(1,))
    return summary(said) + shown + paragraph(_NOTE)


def build(page: Page, label: str) -> list[Any]:
    """Put the tab on the page, for the model that is picked at first; returns what changes with the model."""
    languages = written_languages(page.models.model(label))
    with page.gradio.Tab("Style transfer", visible=bool(languages)) as tab:
        with page.gradio.Row():
            meaning = page.text("Take the meaning of this sentence", MEANING, elem_id="meaning")
            style = page.text("Take the style of this sentence", STYLE, elem_id="style")
        first = languages[0] if languages else None
        language = page.gradio.Radio(languages, value=first, label="Language to write", elem_id="language")
        button = page.button("Write the sentence", "transfer")
        fields = [meaning, style, language]
        page.result("style-result", lambda *given: transfer_html(page.models, *given), button, fields)
    return [tab, language]


def changes(gradio: ModuleType, model: Any = None) -> list[Any]:  # noqa: ANN401 - what `Models` loads
    """What `build` returned, for another model, or for none: whether the tab is there, and its languages."""
    languages = [] if model is None else written_languages(model)
    first = languages[0] if languages else None
    return [gradio.Tab(visible=bool(languages)), gradio.Radio(choices=languages, value=first)]
