"""What the cards of BGT and its ablations say: generative models of translations."""

from __future__ import annotations

from st_paragram.core.encoding.record import TrainingRecord
from st_paragram.learning.losses.paper import Paper
from st_paragram.learning.models.card import CardFacts

_DESCRIPTION = """\
{found}
(Wieting, Neubig and Berg-Kirkpatrick, EMNLP 2020). It also has decoders, for `st-paragram generate`."""

_FOUND = {
    "bgt": "the meaning that a bilingual generative transformer finds in a sentence, apart from its language",
    "no-langvars": "the meaning that a bilingual generative transformer without variables of the languages finds",
    "no-prior": "the meaning that a bilingual generative transformer without a prior finds in a sentence",
    "bilingual-trans": "what a transformer knows of a sentence that has learned to translate in both directions",
    "english-trans": "what a transformer knows of a sentence that has learned to translate out of English",
    "english-ae": "what an autoencoder of English knows of a sentence",
    "english-vae": "what a variational autoencoder of English knows of a sentence",
}

_BGT = Paper(
    "wieting-etal-2020-bilingual",
    "A Bilingual Generative Transformer for Semantic Sentence Embedding",
    "Wieting, John and Neubig, Graham and Berg-Kirkpatrick, Taylor",
    "Proceedings of EMNLP 2020",
    2020,
    "https://arxiv.org/abs/1911.03895",
)


def card_facts(record: TrainingRecord) -> CardFacts:
    """Those of a generative model, by its `objective`."""
    found = _FOUND.get(record.settings["objective"], "what a generative model finds in a sentence")
    return CardFacts(_DESCRIPTION.format(found=found), "transformer", (_BGT,))
