"""The families of models by name. Nothing of a family is imported before it is asked for.

A family is a folder of `families/` with these modules: `family` (its `FAMILY`, what is trained and how),
`sentence_transformers_encoder` (models that have more than a pipeline), `<command>_command` for each command that it
adds, and `card_facts` for model cards.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from st_paragram.errors import SettingsError


@dataclass(frozen=True)
class FamilyEntry:
    """What is known of a family before it is imported. The values of mappings are lines of help."""

    package: str
    trains: Mapping[str, str] = field(default_factory=dict)  # kinds of `st-paragram train`
    commands: Mapping[str, str] = field(default_factory=dict)
    architectures: Mapping[str, str] = field(default_factory=dict)  # of its model directories
    benchmarks: tuple[str, ...] = ()  # modules of the package

    def module(self, name: str) -> ModuleType:
        """A module of the family's package, imported now."""
        return importlib.import_module(f"{self.package}.{name}")


FAMILIES: dict[str, FamilyEntry] = {
    "psp": FamilyEntry(
        "st_paragram.families.psp",
        trains={
            "bitext": "an averaging model (P-SP, SP) on sentences and their translations (EMNLP 2022, ACL 2019)",
            "paraphrase": "an averaging model on English paraphrases (EMNLP 2022)",
        },
    ),
    "bgt": FamilyEntry(
        "st_paragram.families.bgt",
        trains={"bgt": "a bilingual generative transformer, which can also write sentences (EMNLP 2020)"},
        commands={"generate": "write sentences with a generative model: again, translated, or in another style"},
        architectures={"generative": "generative model, BGT"},
    ),
    "muse": FamilyEntry(
        "st_paragram.families.muse",
        trains={"muse": "a multilingual dual encoder on translations, questions, responses and inference (ACL 2020)"},
        commands={"towers": "train towers of questions and answers, and inference, over a finished model"},
        architectures={"dual-encoder": "dual encoder, mUSE"},
        benchmarks=("nli",),
    ),
}


def entry_named(name: str) -> FamilyEntry:
    """The entry of a family, or a `SettingsError`."""
    if name not in FAMILIES:
        raise SettingsError(f"no family of models is named {name!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def family_named(name: str) -> Any:  # noqa: ANN401 - a `learning.training.family.Family`
    """A family, imported now."""
    return entry_named(name).module("family").FAMILY


def entry_of_architecture(name: str) -> FamilyEntry | None:
    """The entry of the family that keeps its models in this architecture, if there is one."""
    return next((entry for entry in FAMILIES.values() if name in entry.architectures), None)


def commands() -> dict[str, tuple[FamilyEntry, str]]:
    """The commands that families add: entry and line of help by name."""
    return {name: (entry, about) for entry in FAMILIES.values() for name, about in entry.commands.items()}


def training_kinds() -> dict[str, tuple[str, str]]:
    """The kinds of training: the family's name and a line of help by kind."""
    return {kind: (name, about) for name, entry in FAMILIES.items() for kind, about in entry.trains.items()}
