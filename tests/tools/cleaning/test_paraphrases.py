"""Filters for paraphrases: overlap against a plain reference, labels, scores given and computed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

import st_paragram
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.cleaning.paraphrases import Label, Overlap, ParaphraseScore, trigram_overlap
from st_paragram.tools.cleaning.paraphrases import tokens as words


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("a b c d e", "a b c x y z", 1 / 3),  # abc of abc bcd cde
        ("a b c d e", "x a b c d y", 2 / 3),
        ("a b c d", "a b c d e f g h", 1.0),
        ("a b c", "c b a", 0.0),
        ("a a a a a b", "a a a c", 1 / 2),  # distinct trigrams: aaa aab, and aaa aac
        ("a b", "a b", 0.0),  # no trigram
        ("a b", "a b c", 0.0),
        ("", "", 0.0),
        ("The cat, it sleeps.", "the cat , it sleeps .", 1.0),
        ("I don't know", "I don 't know", 1.0),
        ("“Yes” he said", '"Yes" he said', 1.0),
        ("他说你好", "他说你坏", 1 / 2),
    ],
)
def test_overlap_by_hand(first: str, second: str, shared: float) -> None:
    assert trigram_overlap(first, second) == trigram_overlap(second, first) == shared


def test_words_by_hand() -> None:
    found = words("Don't pay $1,000.50 (3:45 p.m.), well-known Mr. Wu's and/or...")
    assert (
        " ".join(found)
        == "Don 't pay $ 1,000.50 ( 3:45 p.m . ) , well-known Mr . Wu 's and/or . . ."
    )
    assert (
        " ".join(words("dogs' 'quoted' a,b 3, -5 “é” — naïve？"))
        == "dogs ' 'quoted ' a , b 3 , - 5 \" é \" — naïve ？"
    )
    assert words("他说 ok") == ["他", "说", "ok"]
    assert words("क्या हाल है।") == ["क्या", "हाल", "है", "।"]


def test_overlap_filter() -> None:
    ten = " ".join("abcdefghijkl")  # 10 trigrams
    rows = [
        (ten, "a b c d e f g h i x y z"),  # 7 of 10
        (ten, "a b c d e f g h i j y z"),  # 8
        (ten, ten.upper()),
        ("a b", "a b"),
        (ten, ten, "0.9"),
    ]
    over = "n-gram overlap"
    assert Overlap().reject(rows) == [None, over, over, None, over]
    assert Overlap(lower_case=False).reject(rows)[2] is None
    assert Overlap(1.0).reject(rows) == [None] * 5


def test_label() -> None:
    rows = [("a", "b", "en", "x"), ("a", "b", "fr", "en"), ("a", "b", "EN", "en")]
    other = "other label"
    assert Label(0, "en").reject(rows) == [None, other, other]
    assert Label(1, "en").reject(rows) == [other, None, None]
    with pytest.raises(TextError, match=r"label: .* has 4 columns \('a | b'\), .* column 2"):
        Label(2, "en").reject(rows)


def test_scores_of_a_column() -> None:
    rows = [("a", "b", score) for score in ("0.4", "0.39999", "1", "1.01", " 5e-1 ", "-1")]
    low, high, _ = ParaphraseScore.reasons
    assert ParaphraseScore().reject(rows) == [None, low, None, high, None, low]
    assert ParaphraseScore(-2, 0.39999).reject(rows) == [high, None, high, high, high, None]
    assert ParaphraseScore(column=1).reject([("a", "b", "x", "0.7")]) == [None]
    for wrong in ("", "0,5", "nan", "inf", "1_0", "high"):
        with pytest.raises(TextError, match=f"'{wrong}' in column 0"):
            ParaphraseScore().reject([("a", "b", wrong)])
    with pytest.raises(TextError, match="2 columns"):
        ParaphraseScore().reject([("a", "b")])


def test_scores_that_cannot_be() -> None:
    for options in ({"low": 0.9, "high": 0.1}, {"column": None}, {"model": ""}):
        with pytest.raises(SettingsError, match="paraphrase_score"):
            ParaphraseScore(**options)


@pytest.fixture(scope="module")
def model(vocabulary, tmp_path_factory) -> str:
    torch.manual_seed(1)
    model = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")
    return str(load_save.save(model, tmp_path_factory.mktemp("m") / "p-sp-xx"))


def test_scores_of_a_model(model, pairs) -> None:
    rows = [*pairs[:50], (pairs[0][0], pairs[0][0].upper())]
    first, second = (st_paragram.load(model).encode([row[side] for row in rows]) for side in (0, 1))
    cosines = (
        (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    )
    score = ParaphraseScore(0.1, 0.8, model=model)
    assert np.allclose(score.scores(rows), cosines, atol=1e-6)
    low, high, unknown = ParaphraseScore.reasons
    assert score.reject([("", "Ω"), ("Ω", "Ω"), (pairs[0][0], "\u200b")]) == [unknown] * 3
    assert score.reject(rows) == [
        low if cos < 0.1 else high if cos > 0.8 else None for cos in cosines
    ]
    assert {low, high, None} == set(score.reject(rows))
    # at most 1
    assert ParaphraseScore(model=model).reject([(text, text) for text, _ in pairs]) == [None] * len(
        pairs
    )
    assert score.scores(pairs[:30]) == [score.scores([pair])[0] for pair in pairs[:30]]


def test_identity_follows_the_model_not_its_place(model, tmp_path, vocabulary) -> None:
    copy = tmp_path / "copy"
    load_save.save(st_paragram.load(model), copy)
    one, same = (
        ParaphraseScore(model=model).identity(),
        ParaphraseScore(column=5, model=str(copy)).identity(),
    )
    assert one == same and len(one["model"]) == 64
    other = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")
    load_save.save(other, copy, overwrite=True)
    assert ParaphraseScore(model=str(copy)).identity() != one
    assert ParaphraseScore(0.5, column=2).identity() == {
        "low": 0.5,
        "high": 1.0,
        "column": 2,
        "model": None,
    }
    with pytest.raises(ModelDirectoryError, match="nowhere"):
        ParaphraseScore(model=str(tmp_path / "nowhere")).identity()


def test_a_model_stays_at_home(model, pairs) -> None:
    score = ParaphraseScore(model=model)
    before = len(pickle.dumps(score))
    scores = score.scores(pairs)
    assert len(pickle.dumps(score)) == before < 1000
    assert pickle.loads(pickle.dumps(score)) == score
    assert pickle.loads(pickle.dumps(score)).scores(pairs) == scores
