"""Facts for the cards of BGT and its ablations: generative models of translations."""

from __future__ import annotations

from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.learning.models.card import CardFacts
from st_paragram.learning.papers import BGT

_DESCRIPTION = """\
{embedding}
(Wieting, Neubig and Berg-Kirkpatrick, EMNLP 2020).
It also has decoders, for `st-paragram generate`."""

_EMBEDDINGS = {
    "bgt": "the language-independent meaning variable of a bilingual generative transformer",
    "no-langvars": (
        "the meaning variable of a bilingual generative transformer without language variables"
    ),
    "no-prior": "the meaning variable of a bilingual generative transformer without a prior",
    "bilingual-trans": (
        "the sentence encoding of a transformer trained to translate in both directions"
    ),
    "english-trans": "the sentence encoding of a transformer trained to translate from English",
    "english-ae": "the sentence encoding of an autoencoder of English",
    "english-vae": "the sentence encoding of a variational autoencoder of English",
}


def card_facts(record: TrainingRecord) -> CardFacts:
    """Return the facts of a generative model, by its `objective`."""
    objective = record.settings["objective"]
    embedding = _EMBEDDINGS.get(objective, "the sentence encoding of a generative model")
    description = _DESCRIPTION.format(embedding=embedding)
    return CardFacts(description, network="transformer", papers=(BGT,))
