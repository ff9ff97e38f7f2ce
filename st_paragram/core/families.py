"""The families of models by name. A family is imported only when it is needed.

A family is a folder of `families/` with these modules: `family` (its `FAMILY`, the definition of
its training), `sentence_transformers_encoder` (models with more parts than a pipeline),
`<command>_command` for each command that it adds, and `card_facts` for model cards.
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
    """Description of a family, available before it is imported.

    The values of mappings are lines of help.
    """

    package: str
    trains: Mapping[str, str] = field(default_factory=dict)  # kinds of `st-paragram train`
    commands: Mapping[str, str] = field(default_factory=dict)
    architectures: Mapping[str, str] = field(default_factory=dict)  # of its model directories
    benchmarks: tuple[str, ...] = ()  # modules of the package

    def module(self, name: str) -> ModuleType:
        """Import a module of the family's package."""
        return importlib.import_module(f"{self.package}.{name}")


FAMILIES: dict[str, FamilyEntry] = {
    "psp": FamilyEntry(
        "st_paragram.families.psp",
        trains={
            "bitext": (
                "an averaging model (P-SP, SP) on sentences and their translations (EMNLP 2022, ACL"
                " 2019)"
            ),
            "paraphrase": "an averaging model on English paraphrases (EMNLP 2022)",
        },
    ),
    "bgt": FamilyEntry(
        "st_paragram.families.bgt",
        trains={
            "bgt": (
                "a bilingual generative transformer, which can also generate sentences (EMNLP 2020)"
            )
        },
        commands={
            "generate": "reconstruct, translate or restyle sentences with a generative model"
        },
        architectures={"generative": "generative model, BGT"},
    ),
    "muse": FamilyEntry(
        "st_paragram.families.muse",
        trains={
            "muse": (
                "a multilingual dual encoder on translations, questions, responses and inference"
                " (ACL 2020)"
            )
        },
        commands={
            "towers": (
                "add towers for questions and answers, and an inference classifier, to a model"
            )
        },
        architectures={"dual-encoder": "dual encoder, mUSE"},
        benchmarks=("nli",),
    ),
}


def entry_named(name: str) -> FamilyEntry:
    """Return the entry of a family; raise `SettingsError` for an unknown name."""
    if name not in FAMILIES:
        raise SettingsError(f"unknown model family {name!r}; choose one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def family_named(name: str) -> Any:
    """Import a family."""
    return entry_named(name).module("family").FAMILY


def entry_of_architecture(name: str) -> FamilyEntry | None:
    """Return the entry of the family whose models have this architecture, if there is one."""
    return next((entry for entry in FAMILIES.values() if name in entry.architectures), None)


def commands() -> dict[str, tuple[FamilyEntry, str]]:
    """Return the commands that families add: name -> entry and line of help."""
    return {
        name: (entry, about)
        for entry in FAMILIES.values()
        for name, about in entry.commands.items()
    }


def training_kinds() -> dict[str, tuple[str, str]]:
    """Return the kinds of training: kind -> family name and line of help."""
    return {
        kind: (name, about)
        for name, entry in FAMILIES.items()
        for kind, about in entry.trains.items()
    }
