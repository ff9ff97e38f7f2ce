"""The table of families, and a whole family that is added to it with one entry."""

from pathlib import Path

import pytest
from support.data import make_pairs
from support.toy_family.directory import ToyEncoder

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.families import FAMILIES, FamilyEntry, entry_of_architecture, family_named
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.training.family import Family


def test_every_family_is_what_its_entry_says():
    for name, entry in FAMILIES.items():
        family = family_named(name)
        assert isinstance(family, Family) and family.name == (entry.extends or name)
        if not entry.extends:
            assert family.kinds.keys() == entry.trains.keys() and family.settings.family == name
        for command in entry.commands:
            assert entry.module(f"{command}_command").DESCRIPTION
        for architecture in entry.architectures:
            assert entry_of_architecture(architecture) is entry and entry.module("directory").holds


def test_an_unknown_family_is_named():
    with pytest.raises(SettingsError, match="no family of models is named 'laser'; there are psp, sp, bgt, muse"):
        family_named("laser")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in make_pairs(300)), encoding="utf-8")
    return tmp_path


@pytest.fixture
def toy(monkeypatch):
    """A family in one folder, with one entry in the table."""
    entry = FamilyEntry("support.toy_family", {"toy": "a toy"}, architectures={"toy": "a toy"})
    monkeypatch.setitem(FAMILIES, "toy", entry)


def test_a_family_is_one_folder_and_one_entry(folder, toy, capsys):
    command = ["train", "toy", "--lang", "es", "--data", "pairs.tsv", "--vocab-size", "200"]
    assert main([*command, "--plan"]) == 0
    assert "train a model of the family toy (es)" in capsys.readouterr().out
    assert main([*command, "--epochs", "2"]) == 0
    assert "; model in toy-es\n" in capsys.readouterr().out
    assert (
        "Sentence embeddings for en and es: a model of the family toy. 6 components"
        in Path("toy-es/README.md").read_text()
    )
    model = st_paragram.load("toy-es", device="cpu")
    assert isinstance(model, ToyEncoder) and model.encode(["ba ce"]).shape == (1, 6)
    assert main([*command, "--overwrite", "--dim", "0"]) == 1
    assert "dim is 0; it must be greater than or equal to 1" in capsys.readouterr().err


def test_a_model_of_a_family_that_is_not_there_is_refused_in_one_line(folder, toy, monkeypatch, capsys):
    assert main(["train", "toy", "--lang", "es", "--data", "pairs.tsv", "--vocab-size", "200"]) == 0
    monkeypatch.delitem(FAMILIES, "toy")
    with pytest.raises(ModelDirectoryError, match="architecture 'toy', this version of st_paragram knows averaging, "):
        st_paragram.load(Path("toy-es"))
