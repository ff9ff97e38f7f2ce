"""The models that come with the package: they are whole, small and open."""

from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.languages import LARGE_LANGUAGES, MODEL_LANGUAGES
from st_paragram.core.model_directory.find import (
    LARGE,
    SHIPPED,
    SHIPPED_MODELS,
    shipped_folder,
)
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.core.settings import read_yaml

ROOT = Path(__file__).parents[3]
SENTENCES = {
    "en": "where is the railway station?",
    "es": "¿dónde está la estación de tren?",
    "de": "wo ist der bahnhof?",
    "fr": "où est la gare ?",
    "ru": "где находится вокзал?",
    "tr": "tren istasyonu nerede?",
    "zh": "火车站在哪里？",
    "ar": "أين محطة القطار؟",
}
OTHERS = [
    "the cat sleeps on the sofa",
    "he bought two kilos of apples",
    "prices have risen again this year",
]


#: The size of a shipped directory, in bytes, at most.
LARGEST = {"p-sp-mini": 8_000_000, "p-sp-base": 30_000_000, "p-sp-large": 60_000_000}


#: The models for the test of readers, which differ in size; test_characters.py has the tokens of
#: p-sp-base, test_spelling.py those of p-sp-large.
READERS = [
    name if name == SHIPPED else pytest.param(name, marks=pytest.mark.slow)
    for name in SHIPPED_MODELS
]


@pytest.fixture(scope="module", params=SHIPPED_MODELS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return st_paragram.load(name, device="cpu")


def test_it_knows_translations_in_eight_languages(model):
    vectors = model.encode([*SENTENCES.values(), *OTHERS], normalize_embeddings=True)
    cosines = vectors @ vectors.T
    for row, language in enumerate(SENTENCES):
        assert cosines[row, 0] > cosines[row, len(SENTENCES) :].max() + 0.1, language


def test_it_is_small_and_whole(name):
    folder = shipped_folder(name)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= LARGEST[name]
    assert not (folder / "tokenizer.json").exists()  # `st-paragram get` makes it


def test_its_text_is_open_and_its_card_says_so(name):
    sources = read_yaml(ROOT / "recipes" / "release.yaml")["sources"]
    card = ModelCard.load(shipped_folder(name) / "README.md")
    assert card.data.license == "cc-by-sa-4.0"
    languages = LARGE_LANGUAGES if name == LARGE else MODEL_LANGUAGES
    assert sorted(card.data.language) == sorted(languages)
    table = card.text.partition("## Sources")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in table.split("\n") if line.startswith("| ")][2:]
    assert len(rows) > 10
    for source in rows:
        assert sources[source].get("open"), source
        if name == LARGE:  # the sources of earlier models have changed since
            assert sources[source]["license"] in table


@pytest.mark.parametrize("name", READERS, scope="module")
def test_get_writes_a_directory_for_every_reader(name, model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["get", name]) == 0
    assert "README.md is the model card" in capsys.readouterr().err
    stock = SentenceTransformer(str(tmp_path / name), device="cpu", trust_remote_code=False)
    texts = [*SENTENCES.values(), *OTHERS]
    theirs, ours = (each.encode(texts, normalize_embeddings=True) for each in (stock, model))
    assert np.abs((theirs * ours).sum(1) - 1).max() < 1e-5
    folders = tmp_path / name, shipped_folder(name)
    cards = [(folder / "README.md").read_text().partition("## Table of ") for folder in folders]
    assert cards[0][0] == cards[1][0] and [card[2][:4] for card in cards] == ["int8", "int4"]
    assert read_training_record(tmp_path / name) == read_training_record(shipped_folder(name))
    assert main(["get", name]) == 1
    assert f"{name} exists; choose another name or give --overwrite" in capsys.readouterr().err


def test_get_cuts_a_language_out_of_the_larger_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["get", "p-sp-es"]) == 0
    stock = SentenceTransformer("p-sp-es", device="cpu", trust_remote_code=False)
    texts = [SENTENCES["en"], SENTENCES["es"], *OTHERS]
    whole = st_paragram.Encoder("p-sp-base").encode(texts, normalize_embeddings=True)
    assert np.abs((stock.encode(texts, normalize_embeddings=True) * whole).sum(1) - 1).max() < 1e-5
    card = ModelCard.load("p-sp-es/README.md")
    assert card.data.language == ["en", "es"] and card.text.lstrip().startswith("# p-sp-es\n")
    sizes = []
    for folder in (tmp_path / "p-sp-es", shipped_folder("p-sp-base")):
        sizes.append((folder / "sentencepiece.model").stat().st_size)
    assert sizes[0] < sizes[1] / 2
