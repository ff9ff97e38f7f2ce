"""Facts for the cards of BGT and its ablations: generative models of translations."""

from __future__ import annotations

from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.learning.models.card import CardFacts
from st_paragram.learning.papers import Paper

_DESCRIPTION = """\
{found}
(Wieting, Neubig and Berg-Kirkpatrick, EMNLP 2020). It also has decoders, for `st-paragram generate`."""

_FOUND = {
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

_BGT = Paper(
    "wieting-etal-2020-bilingual",
    "A Bilingual Generative Transformer for Semantic Sentence Embedding",
    "Wieting, John and Neubig, Graham and Berg-Kirkpatrick, Taylor",
    "Proceedings of EMNLP 2020",
    2020,
    "https://arxiv.org/abs/1911.03895",
)


def card_facts(record: TrainingRecord) -> CardFacts:
    """Return the facts of a generative model, by its `objective`."""
    found = _FOUND.get(record.settings["objective"], "the sentence encoding of a generative model")
    return CardFacts(_DESCRIPTION.format(found=found), "transformer", (_BGT,))
