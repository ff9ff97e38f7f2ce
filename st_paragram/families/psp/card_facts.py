"""Facts for the cards of P-SP and SP: averages of embeddings."""

from __future__ import annotations

from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.learning.models.card import CardFacts
from st_paragram.learning.papers import P_SP, SP

_DESCRIPTION = """\
the mean of {averaged}, trained on pairs of sentences with the
same meaning by the procedure of P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022)."""

_AVERAGED = {
    "sp": "sentencepiece embeddings",
    "word": "word embeddings",
    "trigram": "embeddings of character trigrams",
    "blstm": "the states of a bidirectional LSTM over sentencepiece embeddings",
    "blstm-word": "the states of a bidirectional LSTM over word embeddings",
}

_OTHER_SPLITTING = """\
Plain sentence-transformers cannot read this model, because it does not split text in this way."""

_TWO_VOCABULARIES = """\
Each language has a separate vocabulary: `model.encode(texts, language="{second}")` uses the second. Plain
sentence-transformers cannot read this model."""


def card_facts(record: TrainingRecord) -> CardFacts:
    """Return the facts of an averaging model, by its `encoder` and the tokenization of its
    preparation.
    """
    encoder, prepared, why = record.settings.get("encoder", "sp"), record.preparation, ""
    if prepared.get("sharing", "joint") != "joint":
        why = _TWO_VOCABULARIES.format(second=record.languages[1])
    elif prepared.get("tokens") == "trigram" or prepared.get("splitter", "regex") != "regex":
        why = _OTHER_SPLITTING
    return CardFacts(
        _DESCRIPTION.format(averaged=_AVERAGED.get(encoder, "embeddings")),
        "static-embeddings",
        (P_SP,) if encoder == "sp" else (P_SP, SP),
        why,
    )
