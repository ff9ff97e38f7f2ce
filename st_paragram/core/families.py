"""The families of models by name: the one table that says which there are and where each lives.

A family is a folder of `families/`, or somebody else's package that the entry point group `st_paragram.families`
names. Nothing of a family is imported before it is asked for. Inside its package, by convention:

- `family.FAMILY` is its `Family`: what is trained, and how;
- `directory` keeps its pipelines in model directories, if they need an architecture that no other family has;
- `<command>_command` is each command that it adds to `st-paragram`;
- `card_facts.card_facts(record)` is what a model card says of a model of it, see `learning.models.card`;
- `demo_tab` is the tab that it adds to the demo page.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from st_paragram.errors import SettingsError

ENTRY_POINTS = "st_paragram.families"

_PIPELINE_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")


@dataclass(frozen=True)
class FamilyEntry:
    """What is known of a family before it is imported.

    Attributes:
        package: Where it lives.
        trains: The kinds of `st-paragram train` that it answers to, with a line of help for each.
        commands: The commands that it adds, with a line of help for each.
        architectures: The architectures of its model directories, with what each is in words.
        files: Patterns of the files that make a model, in the order in which its fingerprint is computed.
        benchmarks: What `st-paragram evaluate` can score because of it, each a module of that name.
        recorded_by: A setting that no other family has, by which the record of a training is known as one of it.
        extends: The family whose training offers this one's encoders and configurations as choices, if any.
        demo_tab: It adds a tab to the demo page.
    """

    package: str
    trains: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    architectures: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = _PIPELINE_FILES
    benchmarks: tuple[str, ...] = ()
    recorded_by: str = ""
    extends: str = ""
    demo_tab: bool = False

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
    "sp": FamilyEntry(
        "st_paragram.families.sp",
        commands={"paranmt": "make a pair store of scored paraphrases"},
        architectures={"recurrent": "bidirectional LSTM"},
        files=("st_paragram.json", "*.model", "*.safetensors"),
        extends="psp",
    ),
    "bgt": FamilyEntry(
        "st_paragram.families.bgt",
        trains={"bgt": "a bilingual generative transformer, which can also write sentences (EMNLP 2020)"},
        commands={"generate": "write sentences with a generative model: again, translated, or in another style"},
        architectures={"generative": "generative model, BGT"},
        recorded_by="objective",
        demo_tab=True,
    ),
    "muse": FamilyEntry(
        "st_paragram.families.muse",
        trains={"muse": "a multilingual dual encoder on translations, questions, responses and inference (ACL 2020)"},
        commands={
            "tasks": "turn public files of questions, dialogues and inference into data for train muse",
            "towers": "train towers of questions and answers, and inference, over a finished model",
        },
        architectures={"dual-encoder": "dual encoder, mUSE"},
        benchmarks=("nli",),
        recorded_by="architecture",
    ),
}


def entries() -> Iterator[tuple[str, FamilyEntry]]:
    """Names and entries of all families, those of other packages last.

    Another package's family has one kind of training and one architecture, both of its name. A name that is taken
    stays with the family of this package.
    """
    from importlib.metadata import entry_points  # looking through all packages takes a while

    yield from FAMILIES.items()
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in FAMILIES:
            about = f"a model of {point.value}"
            yield point.name, FamilyEntry(point.value, {point.name: about}, architectures={point.name: about})


def entry_named(name: str) -> FamilyEntry:
    """The entry of a family.

    Raises:
        SettingsError: there is no such family.
    """
    if name in FAMILIES:
        return FAMILIES[name]
    known = dict(entries())
    if name not in known:
        raise SettingsError(f"no family of models is named {name!r}; there are {', '.join(known)}")
    return known[name]


def family_named(name: str) -> Any:  # noqa: ANN401 - a `learning.training.family.Family`
    """A family, imported now; one that extends another is trained by that.

    Raises:
        SettingsError: there is no such family.
    """
    entry = entry_named(name)
    return family_named(entry.extends) if entry.extends else entry.module("family").FAMILY


def entry_of_architecture(name: str) -> FamilyEntry | None:
    """The entry of the family that keeps its models in this architecture; None if there is none."""
    own = (entry for entry in FAMILIES.values() if name in entry.architectures)
    return next(own, None) or next((entry for _, entry in entries() if name in entry.architectures), None)


def entry_of_record(settings: Mapping[str, object]) -> tuple[str, FamilyEntry]:
    """The family of a trained model by the settings of its training: name and entry.

    Those of this package are known by a setting, so that records of all versions are; others name themselves.
    """
    if isinstance(name := settings.get("family"), str):
        return name, entry_named(name)
    known = ((name, entry) for name, entry in FAMILIES.items() if entry.recorded_by)
    marked = ((name, entry) for name, entry in known if settings.get(entry.recorded_by))
    return next(marked, ("psp", FAMILIES["psp"]))


def commands() -> dict[str, tuple[FamilyEntry, str]]:
    """The commands that the families of this package add: entry and line of help by name."""
    return {name: (entry, about) for entry in FAMILIES.values() for name, about in entry.commands.items()}


def training_kinds() -> dict[str, tuple[str, str]]:
    """The kinds of training: the family's name and a line of help by kind."""
    return {kind: (name, about) for name, entry in entries() for kind, about in entry.trains.items()}
