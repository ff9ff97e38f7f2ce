"""The families of models by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.family import GenerativeFamily
from st_paragram.families.muse.family import DualEncoderFamily
from st_paragram.families.psp.family import ParaphrasticFamily
from st_paragram.learning.family import Family

if TYPE_CHECKING:
    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.learning.models.card import CardFacts

PSP = ParaphrasticFamily()
BGT = GenerativeFamily()
MUSE = DualEncoderFamily()

FAMILIES: dict[str, Family] = {family.name: family for family in (PSP, BGT, MUSE)}


def family_named(name: str) -> Family:
    """Return a family; raise `SettingsError` for an unknown name."""
    if name not in FAMILIES:
        raise SettingsError(f"unknown model family {name!r}; choose one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def facts_of(record: TrainingRecord) -> CardFacts:
    """Return what the card of a trained model says about its family."""
    return family_named(str(record.settings.get("family", "psp"))).card_facts(record)
