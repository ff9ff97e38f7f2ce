"""The model card, README.md of a model directory, and its metadata for the Hugging Face hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.model_directory.configuration import MODULES_FILE

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

#: Follows the name of the model's own directory in code snippets.
PATH_COMMENT = "  # a path to this directory"
LICENSE = "The model is offered under the license `{}`."
#: On a card until a license is chosen.
NO_LICENSE = (
    "No license has been chosen for this model yet. To publish it, choose a license that the"
    " licenses of the training text\nallow; `st-paragram push --license` puts it here."
)

_STOCK_OPENING = """\
With [sentence-transformers](https://sbert.net) alone:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{address}"){comment}
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```

`st_paragram.load("{address}")` also opens it."""
_PLUGIN_OPENING = """\
With st_paragram:

```python
import st_paragram

model = st_paragram.load("{address}"){comment}
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```"""


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
    from huggingface_hub import ModelCardData  # slow to import

    library = "sentence-transformers" if card.stock else "st_paragram"
    tags = [library, "sentence-similarity", "st_paragram", card.network]
    metadata = ModelCardData(
        language=list(card.languages) or None,
        license=card.license,
        license_name=card.license_name,
        library_name=library,
        pipeline_tag="sentence-similarity",
        base_model=card.base_model,
        tags=[tag for tag in dict.fromkeys(tags) if tag],
        model_name=card.name if card.scores else None,
        eval_results=list(card.scores) or None,
    )
    if card.terms:
        terms = card.terms
    elif card.license == "other":
        terms = (
            "The hub does not list the model's license; the licenses of its training text apply."
        )
    else:
        terms = LICENSE.format(card.license) if card.license else NO_LICENSE
    template = _STOCK_OPENING if card.stock else _PLUGIN_OPENING
    comment = "" if card.address else PATH_COMMENT
    opening = template.format(address=card.address or card.name, comment=comment)
    sections = [f"## {title}\n\n{text}" for title, text in [("License", terms), *card.sections]]
    text = blocks(f"# {card.name}", card.summary, opening, card.note, *sections)
    return f"---\n{metadata.to_yaml()}\n---\n\n{text}\n"


def blocks(*parts: str) -> str:
    """Join parts of a text with an empty line between them; empty parts are left out."""
    stripped = [part.strip("\n") for part in parts]
    return "\n\n".join(part for part in stripped if part)


def new_card(name: str, dimension: int, folder: Path) -> str:
    """Format the card of a model without a record of its training, from its files in a folder."""
    return render(without_record(name, dimension, folder))


def without_record(name: str, dimension: int, folder: Path) -> Card:
    """Make the card of a model without a record of its training, from its files in a folder."""
    modules = folder / MODULES_FILE
    stock = modules.is_file() and b'"st_paragram.' not in modules.read_bytes()
    return Card(name, f"Sentence embeddings with {dimension} dimensions.", stock)
