"""Where the classes that `load` returns are: other libraries look at the path, and pickles keep it."""

from __future__ import annotations

import pickle

import pytest

import st_paragram

ENCODERS = ("ParagramEncoder", "GenerativeEncoder", "DualEncoder")


@pytest.mark.parametrize("name", ENCODERS)
def test_other_libraries_see_a_model_of_sentence_transformers(name):
    """KeyBERT and BERTopic look for this word, after the names of some other libraries."""
    path = str(getattr(st_paragram, name))
    assert "sentence_transformers" in path
    assert not any(other in path for other in ("model2vec", "flair", "spacy", "gensim", "saved_model", "fastembed"))


def test_a_model_of_the_package_is_one_of_them():
    assert type(st_paragram.load("p-sp-mini", device="cpu")) is st_paragram.ParagramEncoder


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("learning.models.sentence_transformers_encoder", "ParagramEncoder"),
        ("families.bgt.directory", "GenerativeEncoder"),
        ("families.bgt.directory", "_Beside"),
        ("families.muse.directory", "DualEncoder"),
        ("families.muse.directory", "DualEncoderValues"),
        ("families.muse.directory", "ConvolutionShape"),
        ("families.muse.directory", "_Beside"),
    ],
)
def test_pickles_of_earlier_versions_find_their_classes(module, name):
    old = pickle.loads(f"cst_paragram.{module}\n{name}\n.".encode())
    assert old is getattr(st_paragram, name, old)
    assert "sentence_transformers" in old.__module__
