"""Facts for the cards of P-SP and SP: averages of embeddings."""

from __future__ import annotations

from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.families.psp.encoders import ENCODERS
from st_paragram.learning.models.card import CardFacts
from st_paragram.learning.papers import P_SP, SP

_DESCRIPTION = """\
the mean of {averaged}, trained on pairs of sentences with the
same meaning by the procedure of P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022)."""

_OTHER_SPLITTING = """\
Plain sentence-transformers cannot read this model, because it does not split text in this way."""

_TWO_VOCABULARIES = """\
Each language has a separate vocabulary: `model.encode(texts, language="{second}")` uses the
second. Plain sentence-transformers cannot read this model."""


def card_facts(record: TrainingRecord) -> CardFacts:
    """Return the facts of a model, by its `encoder` and the tokenization of its preparation."""
    encoder = record.settings.get("encoder", "sp")
    prepared = record.preparation
    plugin_only = ""
    if prepared.get("sharing", "joint") != "joint":
        plugin_only = _TWO_VOCABULARIES.format(second=record.languages[1])
    elif prepared.get("tokens") == "trigram" or prepared.get("splitter", "regex") != "regex":
        plugin_only = _OTHER_SPLITTING
    return CardFacts(
        description=_DESCRIPTION.format(averaged=ENCODERS[encoder].averaged),
        network="static-embeddings",
        papers=(P_SP,) if encoder == "sp" else (P_SP, SP),
        plugin_only=plugin_only,
    )
