"""BGT: a bilingual generative transformer, its ablations and its baselines (EMNLP 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.learning.family import Family, Training

if TYPE_CHECKING:
    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.learning.models.card import CardFacts

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


class GenerativeFamily(Family):
    """Transformers that learn the meaning of a sentence by generating it and its translation."""

    name = "bgt"
    settings = GenerativeSettings
    default_config = "bgt_small"
    built_in_config = "bgt_small"

    def check_languages(self, languages: tuple[str, str]) -> None:
        """Refuse pairs of one language."""
        if len(set(languages)) == 1:
            raise SettingsError(
                f"{languages[0]} on both sides: pairs of one language; a generative model needs two"
            )

    @property
    def training(self) -> Training:
        """The module that makes models and trainers."""
        from st_paragram.families.bgt import training

        return training

    def card_facts(self, record: TrainingRecord) -> CardFacts:
        """Return the facts of a generative model, by its `objective`."""
        from st_paragram.learning.models.card import CardFacts
        from st_paragram.learning.papers import BGT

        objective = record.settings["objective"]
        embedding = _EMBEDDINGS.get(objective, "the sentence encoding of a generative model")
        description = _DESCRIPTION.format(embedding=embedding)
        return CardFacts(description, network="transformer", papers=(BGT,))
