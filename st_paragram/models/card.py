"""The model card (README.md of a model directory): data, settings, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sentence_transformers
import torch

from st_paragram.models.training_record import TrainingRecord
from st_paragram.version import installed_version

_CARD = """\
---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
language:
{languages}
tags:
- sentence-transformers
- sentence-similarity
- st_paragram
- static-embeddings
---

# {name}

Sentence embeddings for {language_names}: the mean of sentencepiece embeddings, trained on pairs of sentences of one
meaning with the procedure of P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022). {dim} components,
compared by cosine.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}")  # a path to this directory; or st_paragram.load("{name}")
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```
{reader_note}
## Data

{data}: {pairs:,} pairs of {first} and {second} after preparation.

{preparation}

## Training

{settings}

{seconds:.0f} s of wall time with evaluation and checkpoints; {rate:.0f} pairs/s while training, on {machine}.

## Scores

Correlation of cosines with graded similarity, x 100, on development pairs (they watched the training: no benchmark).

{scores}
{translations}
Made with st_paragram {version}, sentence-transformers {st_version}, torch {torch_version}.
"""

_JIEBA_NOTE = """
This model segments Chinese with jieba before sentencepiece, as in the paper. `st_paragram.load` does so too; a stock
`SentenceTransformer` cannot, and its embeddings of Chinese text DIFFER: use `st_paragram.load`, or segment the text.
"""


def model_card(facts: TrainingRecord) -> str:
    """Render the card in Markdown, with the metadata of the Hugging Face hub on top."""
    languages = list(dict.fromkeys(facts.languages))
    return _CARD.format(
        languages="\n".join(f"- {language.partition('_')[0]}" for language in languages),
        language_names=" and ".join(languages),
        name=facts.name,
        dim=facts.settings["dim"],
        reader_note=_JIEBA_NOTE if facts.segmentation == "jieba" else "",
        data=facts.data,
        pairs=facts.pairs,
        first=facts.languages[0],
        second=facts.languages[1],
        preparation=_table(("preparation", "value"), _simple(facts.preparation)) if facts.preparation else "",
        settings=_table(("setting", "value"), _simple(facts.settings)),
        seconds=facts.seconds,
        rate=facts.pairs_per_second,
        machine=facts.machine,
        scores=_table(
            ("pairs", "model", "Pearson", "Spearman"),
            [
                (
                    f"{s.data} ({s.pairs})",
                    s.model,
                    f"{100 * s.correlation.pearson:.1f}",
                    f"{100 * s.correlation.spearman:.1f}",
                )
                for s in facts.scores
            ],
        ),
        translations=_translations(facts),
        version=installed_version(),
        st_version=sentence_transformers.__version__,
        torch_version=torch.__version__,
    )


def _translations(facts: TrainingRecord) -> str:
    if not facts.translations:
        return ""
    rows = [(f"{s.data} ({s.pairs})", s.model, f"{100 * s.accuracy:.1f}") for s in facts.translations]
    table = _table(("translations", "model", "accuracy"), rows)
    return f"\nHeld-out translations found by nearest neighbour, mean of both directions, x 100.\n\n{table}\n"


def _simple(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows of the plain values; nested reports stay in the store."""
    return [(name, str(value)) for name, value in values.items() if not isinstance(value, Mapping)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows])
