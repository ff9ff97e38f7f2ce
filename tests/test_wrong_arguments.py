"""Python arguments of a wrong type are refused with what was given and what to give."""

import re
from pathlib import Path

import pytest

from st_paragram import (
    Encoder,
    PrepareSettings,
    TrainingRun,
    load,
    parse_source,
    prepare,
)
from st_paragram.errors import ParagramError


@pytest.fixture(scope="module")
def model():
    return load("p-sp-mini", device="cpu")


@pytest.fixture
def pairs_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"the red house {n}\tla casa roja {n}\n" for n in range(20))
    Path("pairs.tsv").write_text(rows, encoding="utf-8")


def test_names_of_files_may_be_text(pairs_file):
    run = TrainingRun("es", "out", "pairs.tsv", translations="pairs.tsv")  # type: ignore[arg-type]
    run.check()
    assert (run.output, run.translations) == (Path("out"), Path("pairs.tsv"))
    assert run.checkpoints == Path("out.checkpoints")
    assert TrainingRun("es", Path("out"), [Path("pairs.tsv")]).source.texts


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": [("a", "b")]}, "data has ('a', 'b') (tuple); give names of files, or train on"),
        ({"language": None}, "languages are None; give the code of one, such as es, or of both"),
        ({"language": ("fr", "de", "es")}, "languages are ('fr', 'de', 'es'); give the code"),
        ({"language": "xx"}, "unknown language code 'xx'"),
        ({"workers": 0}, "workers is 0; it must be at least 1"),
    ],
)
def test_wrong_descriptions_of_a_run(pairs_file, changes, message):
    arguments = {"language": "es", "output": Path("out"), "data": "pairs.tsv"} | changes
    with pytest.raises(ParagramError, match=re.escape(message)):
        TrainingRun(**arguments).check()


@pytest.mark.parametrize("open_model", [Encoder, lambda name: load(name, device="cpu")])
@pytest.mark.parametrize("name", [None, 3, ["p-sp-mini"]])
def test_wrong_models(open_model, name):
    message = f"a model of type {type(name).__name__}; give a path or a name, such as p-sp-mini"
    with pytest.raises(ParagramError, match=re.escape(message)):
        open_model(name)


def test_wrong_texts(model):
    with pytest.raises(
        ParagramError, match=r"a list of texts in a list: \['a', 'b'\]; give a flat"
    ):
        model.encode([["a", "b"]])
    with pytest.raises(ParagramError, match="for tensors, open the model with"):
        Encoder("p-sp-mini").encode(["a"], convert_to_tensor=True)


def test_wrong_sources(tmp_path):
    with pytest.raises(
        ParagramError, match=r"languages are 'es'; give both, such as \('en', 'es'\)"
    ):
        parse_source("a.tsv", "es")  # type: ignore[arg-type]
    with pytest.raises(
        ParagramError, match=r"a text is 'a\.tsv'; make a TextSource with parse_source"
    ):
        prepare(["a.tsv"], tmp_path / "a.h5", PrepareSettings(("en", "es")))  # type: ignore[list-item]
