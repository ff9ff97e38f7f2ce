"""A web page that shows what a model does, built from Gradio's components."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
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

MAX_CHARACTERS = 1_000  # of a sentence
MAX_LINES = 2_000  # of the list that is searched
MAX_ALIGNED = 300  # sentences of a text that is aligned
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
FIRST = "Where can I buy a ticket for the train?"
SECOND = "¿Dónde se compran los billetes de tren?"
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
Mi abuela hace pan para todos.
En primavera vienen muchos visitantes a ver las flores."""


def launch(
    names: Sequence[str], host: str = "127.0.0.1", port: int | None = None, show: bool = False
) -> Any:
    """Serve the page for some models in the background.

    Args:
        names: Paths, names or hub ids of models. The first is loaded at once, the others when they
            are chosen.
        host: Address to listen on.
        port: Port to listen on; None: the first free port from 7860 up.
        show: Open the page in a browser.

    Returns:
        Gradio's `Blocks`: `local_url` is the address, `block_thread()` waits until Ctrl-C,
        `close()` ends the page.
    """
    page = build(names)
    try:
        page.launch(
            server_name=host,
            server_port=port,
            inbrowser=show,
            max_file_size=1,  # no uploads
            prevent_thread_lock=True,
            quiet=True,
            share=False,
            ssr_mode=False,
            footer_links=[],
        )
    except (OSError, ValueError) as error:
        where = f"{host}, port {port}" if port else host
        raise SettingsError(
            f"the page cannot listen on {where}; choose another --port or --host"
        ) from error
    return page


def build(names: Sequence[str]) -> Any:
    """Build the page as Gradio's `Blocks`.

    The first model is loaded at once, the others when they are chosen.
    """
    folders = {name: find(name) for name in names}
    # read on import
    os.environ |= {"GRADIO_ANALYTICS_ENABLED": "False", "GRADIO_RUN_HISTORY": "False"}
    gr = require("gradio", "demo", "the demo page")
    models = {names[0]: load_encoder(folders[names[0]])}

    def connect(on: Any, answer: Callable[..., Any], inputs: list[Any], outputs: Any) -> None:
        """Call `answer` with the chosen model and the inputs on an event."""

        def answered(name: str, *texts: str) -> Any:
            try:
                if name not in models:
                    models[name] = load_encoder(folders[name])
                return answer(models[name], *texts)
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

    def table(label: str, **widths: str) -> Any:
        return gr.Dataframe(
            headers=[column.replace("_", " ") for column in widths],
            column_widths=list(widths.values()),
            label=label,
            interactive=False,
            wrap=True,
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
                        label = f"{side}: contributions"
                        outputs.append(table(label, token="60%", contribution="40%"))
            connect(button.click, show_comparison, inputs, outputs)
        with gr.Tab("Search"):
            label = f"Sentences, one per line (at most {MAX_LINES:,})"
            inputs = [text("Query", QUERY), text(label, LIST, lines=8)]
            button = gr.Button("Find the nearest sentences", variant="primary")
            output = table("Nearest sentences", cosine="20%", sentence="65%", line="15%")
            connect(button.click, nearest, inputs, output)
        with gr.Tab("Align"):
            with gr.Row():
                label = f"First text, one sentence per line (at most {MAX_ALIGNED})"
                first = text(label, FIRST_TEXT, lines=6)
                second = text("Second text, in the same order", SECOND_TEXT, lines=6)
            button = gr.Button("Align the texts", variant="primary")
            output = table("Aligned sentences", score="16%", first_text="42%", second_text="42%")
            connect(button.click, aligned, [first, second], output)
    return page


def show_comparison(model: TextEncoder, first: str, second: str) -> list[Any]:
    """Return the cosine in words, and tokens with colors and table rows of each sentence.

    Colors are numbers from -1 to 1.
    """
    first = _sentence(first, "first sentence")
    second = _sentence(second, "second sentence")
    comparison = compare(model, first, second)
    note = _EXACT if comparison.exact else _LEFT_OUT
    outputs: list[Any] = [f"### Cosine: {comparison.cosine:.3f}\n\n{note} {_COLORS}"]
    for parts in (comparison.first, comparison.second):
        contributions = [part.contribution for part in parts]
        largest = max(map(abs, contributions), default=0) or 1
        colors = [(part.text, part.contribution / largest) for part in parts]
        rows = [[part.text, f"{part.contribution:+.4f}"] for part in parts]
        if comparison.exact:
            rows.append(["sum", f"{sum(contributions):+.4f}"])
        outputs += [colors, rows]
    return outputs


def nearest(model: TextEncoder, query: str, text: str) -> list[list[str]]:
    """Return rows of cosine, sentence and line number for the ten nearest sentences in a list.

    Equal sentences are in line order.
    """
    query = _sentence(query, "query")
    lines = _lines(text, "list", MAX_LINES)
    query_encoder, line_encoder = readers(model)
    queries = unit_embeddings(query_encoder, [query], normalize_embeddings=True)
    if not queries.known.all():
        raise TextError(
            f"the model knows no token in the query {short(query)}; use one of its languages"
        )
    vectors, known = unit_embeddings(line_encoder, lines, normalize_embeddings=True)
    # equal rows have equal cosines in float64
    cosines = vectors.astype(np.float64) @ queries.vectors[0].astype(np.float64)
    cosines = cosines.round(5)
    order = np.argsort(-cosines, kind="stable")
    best = order[known[order]][:_NEAREST]
    return [[f"{cosines[row]:.3f}", lines[row], str(row + 1)] for row in best.tolist()]


def aligned(model: TextEncoder, first: str, second: str) -> list[list[str]]:
    """Return rows of score and both sides of an alignment.

    A sentence without a match has an empty other side and no score.
    """
    if languages_of(model):
        raise SettingsError(
            "this model has one vocabulary per language and cannot align; choose another model"
        )
    source = _lines(first, "first text", MAX_ALIGNED)
    target = _lines(second, "second text", MAX_ALIGNED)

    rows = []
    for block in align(source, target, model, AlignmentSettings(with_skipped=True)):
        source_text = " ".join(source[row] for row in block.source)
        target_text = " ".join(target[row] for row in block.target)
        score = f"{block.score:.2f}" if source_text and target_text else ""
        rows.append([score, source_text, target_text])
    return rows


def _sentence(text: str, name: str) -> str:
    # browsers may send lone surrogates
    sentence = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    if not 0 < len(sentence) <= MAX_CHARACTERS:
        raise TextError(
            f"the {name} has {len(sentence):,} characters; write from 1 to {MAX_CHARACTERS:,}"
        )
    return sentence


def _lines(text: str, name: str, limit: int) -> list[str]:
    lines = [line for line in text.split("\n") if line.strip()]
    if not 0 < len(lines) <= limit:
        raise TextError(
            f"the {name} has {len(lines):,} sentences; write from 1 to {limit:,}, one per line"
        )
    return [
        _sentence(line, f"sentence {number} of the {name}") for number, line in enumerate(lines, 1)
    ]
