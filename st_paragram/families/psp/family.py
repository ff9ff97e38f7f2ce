"""P-SP (EMNLP 2022) and the encoders of SP (ACL 2019), trained on bitext or paraphrases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.model_directory.configuration import AVERAGING, read_configuration
from st_paragram.core.model_directory.find import find
from st_paragram.families.psp.encoders import ENCODERS
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.learning.family import Family, Training

if TYPE_CHECKING:
    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.learning.models.card import CardFacts

_DESCRIPTION = """\
the mean of {averaged}, trained on pairs of sentences with the
same meaning by the procedure of P-SP (Wieting, Gimpel, Neubig and Berg-Kirkpatrick, EMNLP 2022)."""

_OTHER_SPLITTING = """\
Plain sentence-transformers cannot read this model, because it does not split text in this way."""

_TWO_VOCABULARIES = """\
Each language has a separate vocabulary: `model.encode(texts, language="{second}")` uses the
second. Plain sentence-transformers cannot read this model."""


class ParaphrasticFamily(Family):
    """Averages of embeddings, trained with the margin loss and hard negatives."""

    name = "psp"
    settings = TrainingSettings
    default_config = "short"
    built_in_config = "demo"
    holds_out = True

    def encoder_to_continue(self, settings: TrainingSettings) -> Encoder | None:
        """Return the averaging model of `init` if its tokens are sentencepiece's."""
        if not settings.init or settings.tokens != "sentencepiece":
            return None
        if read_configuration(find(settings.init)).architecture != AVERAGING:
            return None
        encoder = Encoder(settings.init)
        return encoder if encoder.tokenizer.kind == "sentencepiece" else None

    @property
    def training(self) -> Training:
        """The module that makes models and trainers."""
        from st_paragram.families.psp import training

        return training

    def card_facts(self, record: TrainingRecord) -> CardFacts:
        """Return the facts of a model, by its `encoder` and the tokenization of its preparation."""
        from st_paragram.learning.models.card import CardFacts
        from st_paragram.learning.papers import P_SP, SP

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
