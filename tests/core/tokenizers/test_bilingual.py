"""Vocabularies of two languages with one embedding matrix: rows by hand, both kinds of sharing."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from st_paragram.core.tokenizers.base import LETTERS, NO_TEXT
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.core.tokenizers.loading import load_tokenizer
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.errors import SettingsError

ENGLISH = ["a b b c", "a b d", "b ."]  # words by frequency: b a . c d
OTHER = ["b x . x", "x a", "z . x"]  # x . a b z
FIRST, SECOND = ["b", "a", ".", "c", "d"], ["x", ".", "a", "b", "z"]


def made(sharing, languages=("en", "xx")):
    first, second = (WordTokenizer(train_words(texts)) for texts in (ENGLISH, OTHER))
    assert [first.piece(i) for i in range(5)] == FIRST and [
        second.piece(i) for i in range(5)
    ] == SECOND
    return BilingualTokenizer.of(first, second, sharing, languages)


def ids(tokenizer, text):
    return tokenizer.encode([text])[0].tolist()


def test_rows_by_string():
    """Five words and the unknown id of English, then x and z, which English does not have."""
    english = made(Sharing.STRING)
    other = english.in_language("xx")
    assert len(english) == len(other) == 8
    assert ids(english, "b a . c d") == [0, 1, 2, 3, 4] and ids(english, "x") == [5]
    assert ids(other, "x . a b z") == [6, 2, 1, 0, 7] and ids(other, "c") == [5]
    assert english.unknown_id == other.unknown_id == 5


def test_disjoint_rows():
    english = made(Sharing.DISJOINT)
    other = english.in_language("xx")
    assert len(english) == len(other) == 12
    assert ids(english, "b a . c d x") == [0, 1, 2, 3, 4] and ids(english, "x") == [5]
    assert ids(other, "x . a b z") == [6, 7, 8, 9, 10] and ids(other, "c") == [11]
    assert other.unknown_id == 11
    assert english.count_tokens(["b a x"]) == (3, 1) and other.count_tokens(["b a x"]) == (3, 0)


@pytest.mark.parametrize("sharing", [Sharing.STRING, Sharing.DISJOINT])
def test_rows_for_compiled_means(sharing):
    """The same ids in the type that compiled means read without a conversion."""
    other = made(sharing).in_language("xx")
    rows, offsets = other.encode_rows(OTHER)
    expected_rows, expected_offsets = other.encode(OTHER)
    assert rows.dtype == np.int32
    assert np.array_equal(rows, expected_rows) and np.array_equal(offsets, expected_offsets)


def test_the_two_share_rows_and_differ():
    english = made(Sharing.STRING)
    other = english.in_language("xx")
    assert english != other and english.shares_rows(other) and other.shares_rows(english)
    for stranger in (made(Sharing.DISJOINT), made(Sharing.STRING, ("en", "yy"))):
        assert not english.shares_rows(stranger)
    assert english == other.in_language("en") and hash(english) == hash(other.in_language("en"))
    again = pickle.loads(pickle.dumps(other))
    assert again == other and np.array_equal(again.encode(OTHER)[0], other.encode(OTHER)[0])
    assert load_tokenizer("bilingual", other.content, other.options) == other


def test_kinds_of_tokens_are_those_of_the_language():
    english = made(Sharing.DISJOINT)
    assert set(english.kinds_of(np.full(30_000, 6))) == {NO_TEXT}  # x of the other language
    other = english.in_language("xx")
    assert set(other.kinds_of(np.full(30_000, 6))) == {LETTERS}


def test_other_languages_do_not_share_rows():
    english_to_x = made(Sharing.STRING).in_language("xx")
    assert not english_to_x.shares_rows(made(Sharing.STRING, ("en", "yy")))


def test_tokenizers_of_two_kinds_are_refused():
    with pytest.raises(SettingsError, match="give the same kind and options"):
        first = WordTokenizer(train_words(ENGLISH))
        BilingualTokenizer.of(
            first, WordTokenizer(train_words(OTHER), lower_case=False), Sharing.STRING, ("en", "xx")
        )


@pytest.mark.parametrize("sharing", [Sharing.STRING, Sharing.DISJOINT])
def test_the_other_language_shares_the_tokenizers(sharing, monkeypatch):
    english = made(sharing)
    monkeypatch.setattr(
        "st_paragram.core.tokenizers.bilingual._inner_tokenizer",
        lambda *_, **__: pytest.fail("rebuilt"),
    )
    assert english.in_language("en") is english
    with ThreadPoolExecutor(8) as threads:
        others = list(threads.map(english.in_language, ["xx", "en"] * 50))
    for other, language in zip(others, ["xx", "en"] * 50, strict=True):
        assert (other.language, other.options["language"]) == (language, language)
    assert english.language == "en" and ids(english, "b a . c d") == [0, 1, 2, 3, 4]
    assert (
        others[0].piece(others[0].encode(["z"])[0][0]) == "z"
        and english.unknown_ids == others[0].unknown_ids
    )
    assert len(english.unknown_ids) == (1 if sharing is Sharing.STRING else 2)
    with pytest.raises(SettingsError, match="language is 'yy'; the model has en and xx"):
        english.in_language("yy")
