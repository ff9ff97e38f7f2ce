"""The model card (README.md of a model directory): the facts, and the one template that they are rendered with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

#: Two lines of Python with a `model`.
USAGE = """\
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))"""
#: Follows a name in the snippets that stands for the model's own directory.
PATH_COMMENT = "  # a path to this directory"
#: Stands on a card until a licence is chosen, see `licence_sentence`.
NO_LICENCE = """\
No licence has been stated for this model yet. Whoever publishes it chooses one that the licences of the training text
allow: `st-paragram push --licence` puts it here."""

_STOCK = """\
With [sentence-transformers](https://sbert.net) alone:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{address}"){path}
{usage}
```

Or with st_paragram:

```python
import st_paragram

model = st_paragram.load("{address}")
```"""
_PLUGIN = """\
With st_paragram:

```python
import st_paragram

model = st_paragram.load("{address}"){path}
{usage}
```"""


@dataclass(frozen=True)
class CardFacts:
    """What the cards of a family of models have in common.

    Attributes:
        description: what an embedding is and where that comes from, after "Sentence embeddings for ...: ".
        network: its kind in one word, a tag on the hub.
        citations: BibTeX entries of the papers whose method the training followed.
        plugin_only: why sentence-transformers alone cannot open the model; empty if it can.
        usage: lines of Python with a `model`.
    """

    description: str
    network: str
    citations: tuple[str, ...]
    plugin_only: str = ""
    usage: str = USAGE


@dataclass(frozen=True)
class Card:
    """Everything that a card says.

    Attributes:
        name: of the model.
        summary: the first paragraph.
        stock: sentence-transformers alone opens the model.
        network: its kind in one word, a tag on the hub.
        usage: lines of Python with a `model`.
        note: what to know when loading the model.
        address: on the hub, `owner/name`; without one the snippets name the model's directory.
        licence: an identifier of the hub, such as "cc-by-4.0".
        licence_name: that of a licence "other".
        terms: what the section on the licence says, if not the usual sentence.
        sections: title and text of each, in Markdown.
        languages: codes, for the metadata.
        base_model: the model of the hub that the training began with.
        scores: for the metadata.
    """

    name: str
    summary: str
    stock: bool
    network: str | None = None
    usage: str = USAGE
    note: str = ""
    address: str | None = None
    licence: str | None = None
    licence_name: str | None = None
    terms: str = ""
    sections: tuple[tuple[str, str], ...] = ()
    languages: tuple[str, ...] = ()
    base_model: str | None = None
    scores: tuple[EvalResult, ...] = ()


def render(card: Card) -> str:
    """The card in Markdown, with the metadata of the Hugging Face hub on top."""
    opening = (_STOCK if card.stock else _PLUGIN).format(
        address=card.address or card.name, path="" if card.address else PATH_COMMENT, usage=card.usage
    )
    licence = ("Licence", card.terms or licence_sentence(card.licence))
    sections = [f"## {title}\n\n{text}" for title, text in (licence, *card.sections)]
    text = blocks(f"# {card.name}", card.summary, opening, card.note, *sections)
    return f"---\n{_metadata(card).to_yaml()}\n---\n\n{text}\n"


def blocks(*parts: str) -> str:
    """Parts of a text with an empty line between them; empty ones are left out."""
    return "\n\n".join(stripped for part in parts if (stripped := part.strip("\n")))


def library_and_tags(stock: bool, *more: str | None) -> tuple[str, list[str]]:
    """The library that the hub names as a model's reader, and its tags."""
    library = "sentence-transformers" if stock else "st_paragram"
    return library, [tag for tag in dict.fromkeys([library, "sentence-similarity", "st_paragram", *more]) if tag]


def licence_sentence(licence: str | None) -> str:
    """The card's sentence about the model's licence, or about there being none."""
    if licence == "other":
        return "The model's licence is none of those that the hub lists; the licences of its training text decide."
    return f"The model is offered under the licence `{licence}`." if licence else NO_LICENCE


def score_entry(
    task: str,
    name: str,
    address: str,
    metric: str,
    share: float | None,
    **more: Any,  # noqa: ANN401
) -> list[EvalResult]:
    """One score as an entry of the `model-index`, which the hub shows with the card; none if it does not exist.

    Args:
        task: its kind, as the hub calls it ("STS", "BitextMining").
        name: of the data, for people.
        address: of the data on the hub, or a short name for data that are not there.
        metric: e.g. "cosine_spearman".
        share: the score, -1 .. 1; the entry has it x 100, rounded to two places. None or NaN: there is none.
        more: further fields of `EvalResult`, such as `dataset_config`.
    """
    if share is None or not math.isfinite(share):
        return []
    value = round(100 * share, 2)
    return [
        EvalResult(
            task_type=task, dataset_name=name, dataset_type=address, metric_type=metric, metric_value=value, **more
        )
    ]


def _metadata(card: Card) -> ModelCardData:
    library, tags = library_and_tags(card.stock, card.network)
    return ModelCardData(
        language=list(card.languages) or None,
        license=card.licence,
        license_name=card.licence_name,
        library_name=library,
        pipeline_tag="sentence-similarity",
        base_model=card.base_model,
        tags=tags,
        model_name=card.name if card.scores else None,
        eval_results=list(card.scores) or None,
    )
