"""A web page that shows what a model does, built from Gradio's components."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.extras import require
from st_paragram.core.model_directory.find import find
from st_paragram.errors import ParagramError, SettingsError, TextError, short
from st_paragram.tools.alignment.align import align
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.comparison import compare, languages_of, readers

MAX_CHARACTERS, MAX_LINES, MAX_ALIGNED = 1_000, 2_000, 300
_NEAREST = 10
_TITLE = "Sentence embeddings"
_INTRODUCTION = (
    "A model turns every sentence into a vector. The cosine of two vectors shows how similar the"
    " sentences are in meaning: 1 for the same meaning, -0.1 to 0.3 for most unrelated sentences."
    " The machine that serves this page does all the work."
)
_COLORS = "Red tokens make the sentences more similar, violet tokens make them less similar."
_EXACT = "The contributions of each sentence sum to the cosine."
_LEFT_OUT = (
    "In this kind of model, tokens depend on each other. The contribution of a word is the amount"
    " by which the cosine falls when the word is left out, and contributions do not sum to the"
    " cosine."
)
FIRST, SECOND = "Where can I buy a ticket for the train?", "¿Dónde se compran los billetes de tren?"
QUERY = "When does the museum open?"
LIST = """\
¿A qué hora abre el museo?
Um wie viel Uhr macht die Bibliothek auf?
Le musée est fermé le lundi.
Nous cherchons un restaurant près de la gare.
Во сколько открывается музей?
Müze saat kaçta açılıyor?
博物馆什么时候开门？
متى يفتح المتحف؟
What time does the museum close?
The new bridge was finished last year."""
FIRST_TEXT = """\
Our village lies at the foot of a mountain.
In winter the road is often closed by snow.
Then the children cannot go to school.
Nobody is sad about that.
In spring many visitors come to see the flowers."""
SECOND_TEXT = """\
Nuestro pueblo está al pie de una montaña.
En invierno la nieve cierra a menudo la carretera y los niños no pueden ir a la escuela.
Mi abuela hace pan.
En primavera vienen muchos visitantes a ver las flores."""


def launch(
    names: Sequence[str], host: str = "127.0.0.1", port: int | None = None, show: bool = False
) -> Any:
    """Serve the page for some models in the background, by default at the first free port from 7860
    up.

    Args:
        names: Paths, names or hub ids of models. The first is loaded at once, the others when they
            are chosen.
        host: Address to listen on.
        port: Port to listen on.
        show: Open the page in a browser.

    Returns:
        Gradio's `Blocks`: `local_url` is the address, `block_thread()` waits until Ctrl-C,
        `close()` ends the page.
    """
    page = build(names)
    try:
        options = {
            "prevent_thread_lock": True,
            "quiet": True,
            "share": False,
            "ssr_mode": False,
            "footer_links": [],
        }
        # no uploads
        page.launch(server_name=host, server_port=port, inbrowser=show, max_file_size=1, **options)
    except (OSError, ValueError) as error:
        where = f"{host}, port {port}" if port else host
        raise SettingsError(
            f"the page cannot listen on {where}; choose another --port or --host"
        ) from error
    return page


def build(names: Sequence[str]) -> Any:
    """Build the page as Gradio's `Blocks`; the first model is loaded at once, the others when they
    are chosen.
    """
    folders = {name: find(name) for name in dict.fromkeys(names)}
    # read on import
    os.environ |= {"GRADIO_ANALYTICS_ENABLED": "False", "GRADIO_RUN_HISTORY": "False"}
    gr = require("gradio", "demo", "the demo page")
    loaded = {names[0]: load_encoder(folders[names[0]])}

    def connect(on: Any, answer: Any, inputs: Sequence[Any], outputs: Any) -> None:
        def answered(name: str, *given: str) -> Any:
            try:
                if name not in loaded:
                    loaded[name] = load_encoder(folders[name])
                return answer(loaded[name], *given)
            except ParagramError as error:
                raise gr.Error(str(error), print_exception=False) from error

        on(
            answered,
            [picker, *inputs],
            outputs,
            concurrency_limit=1,
            concurrency_id="model",
            api_visibility="private",
        )

    def text(label: str, value: str, lines: int = 2) -> Any:
        return gr.Textbox(value, label=label, lines=lines, max_lines=12, min_width=260)

    def table(label: str, columns: dict[str, str]) -> Any:
        widths = list(columns.values())
        return gr.Dataframe(
            headers=list(columns), column_widths=widths, label=label, interactive=False, wrap=True
        )

    with gr.Blocks(title=_TITLE, analytics_enabled=False) as page:
        gr.Markdown(f"# {_TITLE}\n\n{_INTRODUCTION}")
        picker = gr.Dropdown(list(folders), value=names[0], label="Model")
        with gr.Tab("Compare"):
            with gr.Row():
                inputs = [text("First sentence", FIRST), text("Second sentence", SECOND)]
            button = gr.Button("Compare the sentences", variant="primary")
            outputs = [gr.Markdown()]
            with gr.Row():
                for side in ("First sentence", "Second sentence"):
                    with gr.Column(min_width=260):
                        outputs.append(gr.HighlightedText(label=side))
                        outputs.append(
                            table(f"{side}: contributions", {"token": "60%", "contribution": "40%"})
                        )
            connect(button.click, show_comparison, inputs, outputs)
        with gr.Tab("Search"):
            inputs = [
                text("Query", QUERY),
                text(f"Sentences, one per line (at most {MAX_LINES:,})", LIST, 8),
            ]
            button = gr.Button("Find the nearest sentences", variant="primary")
            outputs = table(
                "Nearest sentences", {"cosine": "20%", "sentence": "65%", "line": "15%"}
            )
            connect(button.click, nearest, inputs, outputs)
        with gr.Tab("Align"):
            with gr.Row():
                first = text(
                    f"First text, one sentence per line (at most {MAX_ALIGNED})", FIRST_TEXT, 6
                )
                inputs = [first, text("Second text, in the same order", SECOND_TEXT, 6)]
            button = gr.Button("Align the texts", variant="primary")
            outputs = table(
                "Aligned sentences", {"score": "16%", "first text": "42%", "second text": "42%"}
            )
            connect(button.click, aligned, inputs, outputs)
    return page


def show_comparison(model: TextEncoder, first: str, second: str) -> list[Any]:
    """Return the cosine in words and, for each sentence, its tokens with colors from -1 to 1, and
    table rows.
    """
    found = compare(model, _sentence(first, "first sentence"), _sentence(second, "second sentence"))
    shown: list[Any] = [
        f"### Cosine: {found.cosine:.3f}\n\n{_EXACT if found.exact else _LEFT_OUT} {_COLORS}"
    ]
    for parts in (found.first, found.second):
        largest = max((abs(part.contribution) for part in parts), default=0) or 1
        rows = [[part.text, f"{part.contribution:+.4f}"] for part in parts]
        rows += [["sum", f"{sum(part.contribution for part in parts):+.4f}"]] if found.exact else []
        shown += [[(part.text, part.contribution / largest) for part in parts], rows]
    return shown


def nearest(model: TextEncoder, query: str, text: str) -> list[list[str]]:
    """Return rows of cosine, sentence and line number for the ten nearest sentences in a list; ties
    in line order.
    """
    query, lines = _sentence(query, "query"), _lines(text, "list", MAX_LINES)
    reader_of_query, reader_of_lines = readers(model)
    asked = unit_embeddings(reader_of_query, [query], normalize_embeddings=True)
    if not asked.known.all():
        raise TextError(
            f"the model knows no token in the query {short(query)}; use one of its languages"
        )
    vectors, known = unit_embeddings(reader_of_lines, lines, normalize_embeddings=True)
    # Equal rows have equal cosines in float64
    cosines = (vectors.astype(np.float64) @ asked.vectors[0].astype(np.float64)).round(5)
    order = (-cosines).argsort(kind="stable")
    best = order[known[order]][:_NEAREST]
    return [[f"{cosines[row]:.3f}", lines[row], str(row + 1)] for row in best.tolist()]


def aligned(model: TextEncoder, first: str, second: str) -> list[list[str]]:
    """Return rows of score and both sides of an alignment; a sentence without a match has an empty
    other side.
    """
    if languages_of(model):
        raise SettingsError(
            "this model has one vocabulary per language and cannot align; choose another model"
        )
    one, other = (
        _lines(first, "first text", MAX_ALIGNED),
        _lines(second, "second text", MAX_ALIGNED),
    )
    rows = []
    settings = AlignmentSettings(with_skipped=True)
    for block in align(one, other, lambda lines: unit_embeddings(model, lines).vectors, settings):
        sides = [
            " ".join(one[row] for row in block.source),
            " ".join(other[row] for row in block.target),
        ]
        rows.append([f"{block.score:.2f}" if all(sides) else "", *sides])
    return rows


def _sentence(text: str, name: str) -> str:
    # browsers may send lone surrogates
    sentence = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    if not 0 < len(sentence) <= MAX_CHARACTERS:
        raise TextError(
            f"the {name} has {len(sentence):,} characters; write from 1 to {MAX_CHARACTERS:,}"
        )
    return sentence


def _lines(text: str, name: str, most: int) -> list[str]:
    lines = [line for line in text.split("\n") if line.strip()]
    if not 0 < len(lines) <= most:
        raise TextError(
            f"the {name} has {len(lines):,} sentences; write from 1 to {most:,}, one per line"
        )
    return [
        _sentence(line, f"sentence {number} of the {name}") for number, line in enumerate(lines, 1)
    ]
