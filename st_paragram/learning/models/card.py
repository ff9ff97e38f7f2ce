"""The model card (README.md of a model directory): how to load it, licence, data, settings, scores, what to cite."""

from __future__ import annotations

import re

import sentence_transformers
import torch

from st_paragram.core.encoding.configuration import CHECKSUMS_FILE
from st_paragram.core.encoding.training_record import TrainingRecord
from st_paragram.core.version import installed_version
from st_paragram.learning.models.card_metadata import card_metadata
from st_paragram.learning.models.card_tables import source_table, training_parts
from st_paragram.learning.models.card_texts import JIEBA_NOTE, licence_sentence, listed, plugin_note, summary
from st_paragram.learning.models.citations import citations

__all__ = ["model_card", "openings"]

_CARD = """\
---
{metadata}
---

# {name}

Sentence embeddings for {language_names}: {summary} {dim} components,
compared by cosine.

{openings}
{reader_note}
`{checksums}` holds checksums of the model's files: `sha256sum -c {checksums}` compares them, and `st_paragram.load`
does so whenever it reads the model.

## Licence

{licence}

## Data

{data}: {pairs:,} pairs of {first} and {second} after preparation.
{sources}{tasks}
{preparation}

## Training
{beginning}
{settings}

{seconds:.0f} s of wall time with evaluation and checkpoints; {rate:.0f} pairs/s while training, on {machine}.

## Scores

Correlation of cosines with graded similarity, x 100, on development pairs (watched during training: no benchmark).

{scores}
{translations}
Made with st_paragram {version}, sentence-transformers {st_version}, torch {torch_version}.

## Citation

```bibtex
{citations}
```
"""

_STOCK_OPENING = """\
With [sentence-transformers](https://sbert.net) alone:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{address}"){path}
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```

Or with st_paragram:

```python
import st_paragram

model = st_paragram.load("{address}")
```
"""

_PLUGIN_OPENING = """\
With st_paragram:

```python
import st_paragram

model = st_paragram.load("{address}"){path}
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```
"""

#: Follows a name in the snippets that stands for the model's own directory.
PATH_COMMENT = "  # a path to this directory"


def model_card(
    record: TrainingRecord,
    dim: int | None = None,
    licence: str | None = None,
    address: str | None = None,
    sources: bool = True,
) -> str:
    """Render the card in Markdown, with the metadata of the Hugging Face hub on top.

    Args:
        record: of the training run.
        dim: components of the model, where they are fewer than were trained.
        licence: an identifier of the hub, such as "cc-by-4.0"; without one the card says that none has been stated.
        address: on the hub, `owner/name`; without one the snippets name the model's directory.
        sources: list the texts that the pairs were prepared of, as far as the record knows them.
    """
    languages = list(dict.fromkeys(code for side in record.languages for code in side.split("-")))
    note = plugin_note(record)
    card = _CARD.format(
        metadata=card_metadata(record, not note, licence).to_yaml(),
        language_names=listed(languages),
        name=record.name,
        dim=dim or record.settings["dim"],
        summary=summary(record.settings, record.tasks),
        openings=openings(address, record.name, stock=not note),
        reader_note=(note + (JIEBA_NOTE if record.segmentation == "jieba" else "")).lstrip("\n"),
        checksums=CHECKSUMS_FILE,
        licence=licence_sentence(licence),
        data=record.data,
        pairs=record.pairs,
        first=record.languages[0],
        second=record.languages[1],
        sources=source_table(record) if sources else "",
        citations="\n\n".join(citations(record.settings)),
        **training_parts(record),
        version=installed_version(),
        st_version=sentence_transformers.__version__,
        torch_version=torch.__version__,
    )
    return re.sub(r"\n{3,}", "\n\n", card)


def openings(address: str | None, name: str, stock: bool) -> str:
    """The ways of loading a model, in Markdown.

    Args:
        address: on the hub, if it is there.
        name: of its directory.
        stock: sentence-transformers alone can open it.
    """
    template = _STOCK_OPENING if stock else _PLUGIN_OPENING
    return template.format(address=address or name, path="" if address else PATH_COMMENT).rstrip("\n") + "\n"
