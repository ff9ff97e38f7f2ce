"""The model card, README.md of a model directory: its facts, its template, and the card of a
training record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePath

from huggingface_hub import EvalResult, ModelCardData

from st_paragram.core.extras import installed_version
from st_paragram.core.formatting import hundredths, in_words, listed, markdown_table
from st_paragram.core.model_directory.record import Score, TrainingRecord, TranslationScore
from st_paragram.learning.papers import Paper

AFTER = "after training"  # name of the saved model in a training record
#: Follows the name of the model's own directory in code snippets.
PATH_COMMENT = "  # a path to this directory"
LICENSE = "The model is offered under the license `{}`."
#: On a card until a license is chosen.
NO_LICENSE = """\
No license has been chosen for this model yet. To publish it, choose a license that the licenses of the training text
allow; `st-paragram push --license` puts it here."""

_OPENING = """\
With {library}:

```python
{imports}

model = {load}("{address}"){path}
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```"""
_STOCK = {
    "library": "[sentence-transformers](https://sbert.net) alone",
    "imports": "from sentence_transformers import SentenceTransformer",
    "load": "SentenceTransformer",
}
_PLUGIN = {"library": "st_paragram", "imports": "import st_paragram", "load": "st_paragram.load"}
_JIEBA = """\
This model segments Chinese with jieba before sentencepiece, as in the paper. `st_paragram.load` does this; plain
sentence-transformers does not, so its embeddings of Chinese text DIFFER unless you segment the text first."""


@dataclass(frozen=True)
class CardFacts:
    """Facts shared by the cards of a family's trained models, returned by `card_facts` of the
    family.
    """

    description: str  # what an embedding is and its origin, after "Sentence embeddings for ...: "
    network: str  # its kind in one word, a tag on the hub
    papers: tuple[Paper, ...]  # whose method the training followed
    plugin_only: str = ""  # why plain sentence-transformers cannot open the model; empty if it can


@dataclass(frozen=True)
class Card:
    """The content of a card."""

    name: str
    summary: str  # the first paragraph
    stock: bool  # plain sentence-transformers opens the model
    network: str | None = None
    note: str = ""  # what to know when loading the model
    # on the hub, `owner/name`; without one the snippets name the model's directory
    address: str | None = None
    license: str | None = None  # a hub identifier, such as "cc-by-4.0"
    license_name: str | None = None  # name of a license "other"
    terms: str = ""  # text of the section on the license, in place of the usual sentence
    sections: tuple[tuple[str, str], ...] = ()  # title and text of each, in Markdown
    languages: tuple[str, ...] = ()  # codes, for the metadata
    base_model: str | None = None  # hub id of the model that the training started from
    scores: tuple[EvalResult, ...] = ()  # for the metadata


def render(card: Card) -> str:
    """Format the card in Markdown, with the metadata of the Hugging Face hub on top."""
    library = "sentence-transformers" if card.stock else "st_paragram"
    tags = dict.fromkeys([library, "sentence-similarity", "st_paragram", card.network])
    metadata = ModelCardData(
        language=list(card.languages) or None,
        license=card.license,
        license_name=card.license_name,
        library_name=library,
        pipeline_tag="sentence-similarity",
        base_model=card.base_model,
        tags=[tag for tag in tags if tag],
        model_name=card.name if card.scores else None,
        eval_results=list(card.scores) or None,
    )
    terms = LICENSE.format(card.license) if card.license else NO_LICENSE
    if card.license == "other":
        terms = (
            "The hub does not list the model's license; the licenses of its training text apply."
        )
    sections = [
        f"## {title}\n\n{text}"
        for title, text in (("License", card.terms or terms), *card.sections)
    ]
    address, path = (card.address, "") if card.address else (card.name, PATH_COMMENT)
    opening = _OPENING.format(**(_STOCK if card.stock else _PLUGIN), address=address, path=path)
    too = f'`st_paragram.load("{address}")` also opens it.' if card.stock else ""
    text = blocks(f"# {card.name}", card.summary, opening, too, card.note, *sections)
    return f"---\n{metadata.to_yaml()}\n---\n\n{text}\n"


def blocks(*parts: str) -> str:
    """Join parts of a text with an empty line between them; empty parts are left out."""
    return "\n\n".join(stripped for part in parts if (stripped := part.strip("\n")))


def citation(*papers: Paper) -> tuple[str, str]:
    """Return title and text of the section with citations."""
    return "Citation", "```bibtex\n" + blocks(*(paper.bibtex for paper in papers)) + "\n```"


def score_entry(task: str, name: str, metric: str, share: float | None) -> list[EvalResult]:
    """Return a score, x 100, as an entry of the `model-index`, which the hub shows; empty for a
    missing score.

    `task` is a task type of the hub, `name` the name of the data; `share` is in -1 .. 1.
    """
    if share is None or not math.isfinite(share):
        return []
    short_name = re.sub(r"[^a-z0-9]+", "-", name.partition(" (")[0].lower()).strip("-") or "data"
    return [EvalResult(task, short_name, name, metric, round(100 * share, 2))]


def from_record(
    record: TrainingRecord,
    facts: CardFacts,
    dim: int | None = None,  # dimensions of the model, if they are fewer than were trained
    license: str | None = None,
    address: str | None = None,
    sources: bool = True,  # list the texts of the pairs, if the record has them
) -> Card:
    """Make the card of a trained model: data, settings, scores, citations."""
    codes = dict.fromkeys(code for side in record.languages for code in side.split("-"))
    bare = dict.fromkeys(code.partition("_")[0] for code in codes)  # without scripts and countries
    init = str(record.settings.get("init") or "")
    base = init.partition("@")[0]
    on_hub = (
        re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", base) and not Path(base).exists()
    )
    settings = [
        (key, _cell(value))
        for key, value in record.settings.items()
        if not isinstance(value, Mapping)
    ]
    data = blocks(
        f"{record.data}: {record.pairs:,} pairs of {' and '.join(record.languages)} after"
        " preparation, whose settings and reports are in `training.json`.",
        _sources(record) if sources else "",
        (
            markdown_table(
                ("task", "pairs"), [(task, f"{n:,}") for task, n in record.tasks.items()]
            )
            if record.tasks
            else ""
        ),
    )
    training = blocks(
        f"The training started from the weights of `{_cell(init)}`." if init else "",
        (
            f"The training was discarded: {record.discarded}. The model has its weights before"
            " training."
            if record.discarded
            else ""
        ),
        markdown_table(("setting", "value"), settings, left=2),
        f"{record.seconds:.0f} s including evaluation and checkpoints;"
        f" {record.pairs_per_second:.0f} pairs/s while training, on {record.machine}.",
    )
    return Card(
        name=record.name,
        summary=(
            f"Sentence embeddings for {listed(list(codes))}: {facts.description}"
            f" {dim or record.settings['dim']} dimensions,\ncompared by cosine."
        ),
        stock=not facts.plugin_only,
        network=facts.network,
        note=blocks(facts.plugin_only, _JIEBA if record.segmentation == "jieba" else ""),
        address=address,
        license=license,
        sections=(
            ("Data", data),
            ("Training", training),
            ("Scores", _scores(record)),
            citation(*facts.papers),
        ),
        languages=tuple(code for code in bare if re.fullmatch("[a-z]{2,3}", code)),
        base_model=base if on_hub else None,
        scores=tuple(_entries(record)),
    )


def _sources(record: TrainingRecord) -> str:
    """Return the prepared texts, if the record's report has them; otherwise an empty text."""
    report = record.preparation.get("report")
    texts = report.get("sources") if isinstance(report, Mapping) else None
    keys = ("name", "languages", "dropped", "rows", "kept")
    rows = [
        tuple(_cell(text.get(key)) for key in keys)
        for text in (texts if isinstance(texts, Sequence) else ())
        if isinstance(text, Mapping)
    ]
    return (
        markdown_table(("text", "languages", "left out", "pairs", "kept"), rows, left=3)
        if rows
        else ""
    )


def _scores(record: TrainingRecord) -> str:
    correlations = [
        (
            f"{s.data} ({s.pairs})",
            s.model,
            hundredths(s.correlation.pearson),
            hundredths(s.correlation.spearman),
        )
        for s in record.scores
    ]
    found = [
        (f"{s.data} ({s.pairs})", s.model, hundredths(s.accuracy)) for s in record.translations
    ]
    return blocks(
        "Correlation of cosines with graded similarity, x 100, on development pairs (watched during"
        " training: no benchmark).",
        markdown_table(("pairs", "model", "Pearson", "Spearman"), correlations),
        (
            "Held-out translations found by nearest neighbor, mean of both directions, x 100."
            if found
            else ""
        ),
        markdown_table(("translations", "model", "accuracy"), found) if found else "",
        f"Made with st_paragram {installed_version()}, sentence-transformers"
        f" {version('sentence-transformers')}, torch {version('torch')}.",
    )


def _entries(record: TrainingRecord) -> Iterator[EvalResult]:
    """Yield the trained model's scores for the hub, without the built-in pairs, which are too few
    and too rough.
    """
    scores: list[Score | TranslationScore] = [*record.scores, *record.translations]
    saved = scores[0].model if record.discarded else AFTER
    for score in scores:
        if score.model != saved or score.data.startswith("built-in-"):
            continue
        name = f"{score.data} (development)"
        if isinstance(score, TranslationScore):
            yield from score_entry("translation", name, "mean_accuracy", score.accuracy)
        else:
            yield from score_entry(
                "semantic-similarity", name, "pearson_cosine", score.correlation.pearson
            )
            yield from score_entry(
                "semantic-similarity", name, "spearman_cosine", score.correlation.spearman
            )


def _cell(value: object) -> str:
    """Format a value for a card; paths of files on the training machine are shortened to their last
    part.
    """
    text = str(value) if isinstance(value, str | int | float) else in_words(value)
    return PurePath(text).name if isinstance(value, str) and Path(text).is_absolute() else text
