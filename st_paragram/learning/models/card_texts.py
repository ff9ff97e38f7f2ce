"""Sentences of the model card that do not depend on figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from st_paragram.core.encoding.training_record import TrainingRecord

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

JIEBA_NOTE = """
This model segments Chinese with jieba before sentencepiece, as in the paper. `st_paragram.load` does so too; a stock
`SentenceTransformer` cannot, and its embeddings of Chinese text DIFFER: use `st_paragram.load`, or segment the text.
"""

#: Stands on a card until a licence is chosen, see `licence_sentence`.
NO_LICENCE = """\
No licence has been stated for this model yet. Whoever publishes it chooses one that the licences of the training text
allow: `st-paragram push --licence` puts it here."""


def licence_sentence(licence: str | None) -> str:
    """The card's sentence about the model's licence, or about there being none."""
    if licence == "other":
        return "The model's licence is none of those that the hub lists; the licences of its training text decide."
    return f"The model is offered under the licence `{licence}`." if licence else NO_LICENCE


def summary(settings: Mapping[str, Any], tasks: Mapping[str, int]) -> str:
    """What an embedding is, and where that comes from.

    Args:
        settings: of the training run.
        tasks: pairs of other tasks than translation, by task and language ("qa en").
    """
    if network := _NETWORKS.get(settings.get("architecture", "")):
        others = [name for task, name in _TASKS.items() if any(key.split()[0] == task for key in tasks)]
        return _DUAL.format(network=network, tasks=listed(["translations", *others]))
    if objective := settings.get("objective"):
        return _GENERATIVE.format(found=_FOUND.get(objective, "what a generative model finds in a sentence"))
    return _PARAPHRASTIC.format(averaged=_AVERAGED.get(settings.get("encoder", "sp"), "embeddings"))


def plugin_note(record: TrainingRecord) -> str:
    """Why the plugin alone reads the model (see `averaging.opens_in_stock`); empty if other readers do too."""
    prepared = record.preparation
    if prepared.get("sharing", "joint") != "joint":
        return _TWO_VOCABULARIES_NOTE.format(second=record.languages[1])
    if prepared.get("tokens") == "trigram" or prepared.get("splitter", "regex") != "regex":
        return _PLUGIN_NOTE
    return ""


def listed(names: list[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
