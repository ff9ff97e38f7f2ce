"""The model card of an imported checkpoint: where it comes from, and whose terms hold."""

from __future__ import annotations

from st_paragram.conversion.original_report import ImportReport
from st_paragram.core.damage import printable
from st_paragram.core.version import installed_version

_CARD = """\
---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
license: other
license_name: terms-of-the-authors-of-the-checkpoint
tags:
- sentence-transformers
- sentence-similarity
- st_paragram
- static-embeddings
---

# {name}

Sentence embeddings: the mean of {tokens} embeddings, {dimension} components, compared by cosine.

```python
{opening}
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```

## Where it comes from

This model was not trained with st_paragram. It was imported by `st-paragram import` (st_paragram {version}) from a
checkpoint of the original code of {paper}.

| | |
|---|---|
| file | `{file}` |
| SHA-256 | `{digest}` |

**Licence and terms are those of the authors of the checkpoint.** st_paragram's own licence does not cover these
weights; look up what the authors allow before you pass them on.

## What was imported

{sentences}
"""
_STOCK = """\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}")  # a path to this directory; or st_paragram.load("{name}")"""
_PLUGIN = """\
import st_paragram

model = st_paragram.load("{name}")  # a path to this directory; no other reader splits texts in this way"""
_SP = "SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, ACL 2019)"
_PAPER = "P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022) or its predecessor " + _SP
_TOKENS = {"sentencepiece": "sentencepiece", "word": "word", "trigram": "character trigram", "original": "token"}


def imported_card(name: str, report: ImportReport, file: str, stock: bool) -> str:
    """Render the card in Markdown.

    Args:
        name: of the model.
        report: of the import.
        file: name of the checkpoint.
        stock: whether sentence-transformers alone opens the model.
    """
    name = printable(name, 100)
    return _CARD.format(
        name=name,
        tokens=_TOKENS[report.tokens],
        dimension=report.dimension,
        opening=(_STOCK if stock else _PLUGIN).format(name=name),
        version=installed_version(),
        paper=_SP if report.tokens in ("word", "trigram") else _PAPER,
        file=printable(file, 200).replace("`", "'"),
        digest=report.digest,
        sentences="\n".join(f"- {sentence[0].upper()}{sentence[1:]}." for sentence in report.sentences()),
    )
