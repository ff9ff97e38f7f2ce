"""The model card (README.md of a model directory): data, settings, scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sentence_transformers
import torch

from st_paragram.models.training_record import Score, TrainingRecord
from st_paragram.modules.compact_embedding import TableType
from st_paragram.tables import hundredths, markdown_table
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
- {tag}
---

# {name}

Sentence embeddings for {language_names}: {summary} {dim} components,
compared by cosine.

```python
{opening}
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```
{reader_note}
## Data

{data}: {pairs:,} pairs of {first} and {second} after preparation.
{tasks}
{preparation}

## Training

{settings}

{seconds:.0f} s of wall time with evaluation and checkpoints; {rate:.0f} pairs/s while training, on {machine}.

## Scores

Correlation of cosines with graded similarity, x 100, on development pairs (watched during training: no benchmark).

{scores}
{translations}
Made with st_paragram {version}, sentence-transformers {st_version}, torch {torch_version}.
"""

_OPENING = """\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}")  # a path to this directory; or st_paragram.load("{name}")"""

_PLUGIN_OPENING = """\
import st_paragram

model = st_paragram.load("{name}")  # a path to this directory"""

_PARAPHRASTIC = """\
the mean of {averaged}, trained on pairs of sentences with the
same meaning by the procedure of P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022)."""

_GENERATIVE = """\
{found}
(Wieting, Neubig and Berg-Kirkpatrick, EMNLP 2020). Decoders stand beside the encoder, for `st-paragram generate`."""

_DUAL = """\
{network} beside the mean of sentencepiece
embeddings, trained on {tasks} as multilingual USE is (Yang et al., ACL 2020).
`model.encode_query` and `model.encode_document` are its towers of questions and of answers."""

_NETWORKS = {"cnn": "convolutions over pieces", "transformer": "a transformer"}
_TASKS = {"qa": "questions and answers", "response": "responses", "nli": "inference"}

_FOUND = {
    "bgt": "the meaning that a bilingual generative transformer finds in a sentence, apart from its language",
    "no-langvars": "the meaning that a bilingual generative transformer without variables of the languages finds",
    "no-prior": "the meaning that a bilingual generative transformer without a prior finds in a sentence",
    "bilingual-trans": "what a transformer knows of a sentence that has learnt to translate in both directions",
    "english-trans": "what a transformer knows of a sentence that has learnt to translate out of English",
    "english-ae": "what an autoencoder of English knows of a sentence",
    "english-vae": "what a variational autoencoder of English knows of a sentence",
}

_AVERAGED = {
    "sp": "sentencepiece embeddings",
    "word": "word embeddings",
    "trigram": "embeddings of character trigrams",
    "blstm": "the states of a bidirectional LSTM over sentencepiece embeddings",
}

_PLUGIN_NOTE = """
A stock `SentenceTransformer` cannot read this model: its library does not split text in this way.
"""

_TWO_VOCABULARIES_NOTE = """
Each language has a vocabulary of its own: `model.encode(texts, language="{second}")` reads the second one. A stock
`SentenceTransformer` cannot read this model.
"""

_JIEBA_NOTE = """
This model segments Chinese with jieba before sentencepiece, as in the paper. `st_paragram.load` does so too; a stock
`SentenceTransformer` cannot, and its embeddings of Chinese text DIFFER: use `st_paragram.load`, or segment the text.
"""


_TABLE_NOTES = {
    TableType.FLOAT16: """
## Table of float16

Half the size of float32. `st_paragram.load` averages in float32; a stock `SentenceTransformer` computes and returns
float16.
""",
    TableType.INT8: """
## Table of int8

A quarter of the size of float32: 8-bit integers with one scale a row. `st_paragram.load` keeps them as they are in
memory. A stock `SentenceTransformer` reads them as float32 since sentence-transformers 6.2; an older one stops with
an error about tensors that "can require gradients".
""",
}


def table_note(table_type: str | None) -> str:
    """What readers should know of a table of this type; empty for float32, or for models without a table."""
    return _TABLE_NOTES.get(TableType(table_type), "") if table_type else ""


def model_card(record: TrainingRecord, dim: int | None = None) -> str:
    """Render the card in Markdown, with the metadata of the Hugging Face hub on top.

    Args:
        record: of the training run.
        dim: components of the model, where they are fewer than were trained.
    """
    languages = list(dict.fromkeys(code for side in record.languages for code in side.split("-")))
    return _CARD.format(
        languages="\n".join(f"- {language.partition('_')[0]}" for language in languages),
        language_names=_listed(languages),
        name=record.name,
        dim=dim or record.settings["dim"],
        tag=_tag(record.settings),
        summary=_summary(record),
        opening=(_PLUGIN_OPENING if _plugin_note(record) else _OPENING).format(name=record.name),
        reader_note=_plugin_note(record) + (_JIEBA_NOTE if record.segmentation == "jieba" else ""),
        data=record.data,
        pairs=record.pairs,
        first=record.languages[0],
        second=record.languages[1],
        tasks=_tasks(record),
        preparation=markdown_table(("preparation", "value"), _preparation(record)) if record.preparation else "",
        settings=markdown_table(("setting", "value"), _simple(record.settings)),
        seconds=record.seconds,
        rate=record.pairs_per_second,
        machine=record.machine,
        scores=markdown_table(
            ("pairs", "model", "Pearson", "Spearman"), [_score_row(score) for score in record.scores]
        ),
        translations=_translations(record),
        version=installed_version(),
        st_version=sentence_transformers.__version__,
        torch_version=torch.__version__,
    )


def _summary(record: TrainingRecord) -> str:
    """What an embedding is, and where that comes from."""
    settings = record.settings
    if network := _NETWORKS.get(settings.get("architecture", "")):
        others = [name for task, name in _TASKS.items() if any(key.split()[0] == task for key in record.tasks)]
        return _DUAL.format(network=network, tasks=_listed(["translations", *others]))
    if objective := settings.get("objective"):
        return _GENERATIVE.format(found=_FOUND.get(objective, "what a generative model finds in a sentence"))
    return _PARAPHRASTIC.format(averaged=_AVERAGED.get(settings.get("encoder", "sp"), "embeddings"))


def _tag(settings: Mapping[str, Any]) -> str:
    """What kind of network it is."""
    kind: str = settings.get("architecture", "transformer" if "objective" in settings else "static-embeddings")
    return kind


def _listed(names: list[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _plugin_note(record: TrainingRecord) -> str:
    """Why the plugin alone reads the model (see `averaging.opens_in_stock`); empty if other readers do too."""
    prepared = record.preparation
    if prepared.get("sharing", "joint") != "joint":
        return _TWO_VOCABULARIES_NOTE.format(second=record.languages[1])
    if prepared.get("tokens") == "trigram" or prepared.get("splitter", "regex") != "regex":
        return _PLUGIN_NOTE
    return ""


def _score_row(score: Score) -> tuple[str, ...]:
    found = score.correlation
    return f"{score.data} ({score.pairs})", score.model, hundredths(found.pearson), hundredths(found.spearman)


def _translations(record: TrainingRecord) -> str:
    if not record.translations:
        return ""
    rows = [(f"{s.data} ({s.pairs})", s.model, hundredths(s.accuracy)) for s in record.translations]
    table = markdown_table(("translations", "model", "accuracy"), rows)
    return f"\nHeld-out translations found by nearest neighbour, mean of both directions, x 100.\n\n{table}\n"


def _tasks(record: TrainingRecord) -> str:
    """The other tasks' data, if there is any."""
    if not record.tasks:
        return ""
    rows = [(name, f"{count:,}") for name, count in record.tasks.items()]
    return f"\n{markdown_table(('task', 'pairs'), rows)}\n"


def _preparation(record: TrainingRecord) -> list[tuple[str, ...]]:
    """Rows of the settings; where the size of the vocabulary was left to the number of pairs, the size it has."""
    values = dict(record.preparation)
    if values.get("vocab_size", 0) is None:
        values["vocab_size"] = f"{values['report']['vocabulary_size']} (by the number of pairs)"
    return _simple(values)


def _simple(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows of the plain values; nested reports stay in the store."""
    return [(name, str(value)) for name, value in values.items() if not isinstance(value, Mapping)]
