"""Words: splitting, counting, encoding, and what a list of words may be."""

import itertools
import json
import pickle
import random

import pytest

from st_paragram.core.tokenizers.words import Splitter, WordTokenizer, train_words


def rows_of(encoded):
    ids, offsets = encoded
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


@pytest.fixture(scope="module")
def tokenizer():
    return WordTokenizer(b'["the",".","river","runs"]')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Don't stop, e.g. 3.5%",
            ["don", "'", "t", "stop", ",", "e", ".", "g", ".", "3", ".", "5", "%"],
        ),
        ("a_b हिन्दी में cafe\u0301", ["a_b", "हिन्दी", "में", "cafe\u0301"]),
        ("河水 a\tb\x00c\u2028d", ["河水", "a", "b", "c", "d"]),
        ("a\ud800b 👍🏽", ["a", "b", "👍", "🏽"]),
        ("\u0301 x\u200cy", ["\u0301", "x", "\u200c", "y"]),
    ],
)
def test_words_by_hand(text, words):
    tokenizer = WordTokenizer(train_words([text]))
    assert [tokenizer.piece(each) for each in tokenizer.encode([text])[0]] == words


def test_moses_follows_the_rules_of_the_given_language():
    pytest.importorskip("sacremoses")
    texts = ["l'eau"]
    assert json.loads(train_words(texts, splitter="moses")) == ["'eau", "l"]
    french = train_words(texts, splitter="moses", language="fr")
    assert json.loads(french) == ["eau", "l'"]
    tokenizer = WordTokenizer(french, splitter="moses", language="fr")
    assert [tokenizer.piece(word) for word in tokenizer.encode(texts)[0]] == ["l'", "eau"]


def test_frequency_order_and_ties():
    texts = ["b a B c", "a b d", "", "e e"]
    assert json.loads(train_words(texts)) == ["b", "a", "e", "c", "d"]
    assert json.loads(train_words(["B b b"], lower_case=False)) == ["b", "B"]
    assert (
        train_words(random.Random(1).sample(texts, 4), 3)
        == train_words(iter(texts), 3)
        == b'["b","a","e"]'
    )


def test_unknown_words_are_dropped_and_cuts_count_them(tokenizer):
    texts = ["The sea. The river", "sea", "", "the sea river"]
    assert rows_of(tokenizer.encode(texts)) == [[0, 1, 0, 2], [4], [4], [0, 2]]
    encoded = tokenizer.encode_normalized(texts, 2)
    assert rows_of((encoded.ids, encoded.offsets)) == [[0], [4], [4], [0]]
    assert encoded.cut == 2 and tokenizer.encode_normalized(texts).cut == 0
    assert tokenizer.count_tokens(texts) == (9, 3)  # "sea" is unknown


def test_decode_and_pieces(tokenizer):
    assert tokenizer.decode(tokenizer.encode(["The river, runs."])[0]) == "the river runs ."
    assert tokenizer.decode([0, 4]) == "the ⁇"
    assert [tokenizer.piece(each) for each in range(5)] == ["the", ".", "river", "runs", None]


def test_moses_splits_as_sacremoses_does():
    sacremoses = pytest.importorskip("sacremoses")
    texts = ["Don't stop, e.g. 3.5% & <that>.", "L'eau coule.", "a\ud800b", ""]
    for language in ("en", "fr"):
        moses = sacremoses.MosesTokenizer(lang=language)
        expected = [
            moses.tokenize(text.lower().replace("\ud800", "?"), escape=False) for text in texts
        ]
        own = WordTokenizer(
            train_words(texts, 99, True, Splitter.MOSES, language), True, "moses", language
        )
        assert [own.decode(row) for row in rows_of(own.encode(texts[:3]))] == [
            " ".join(row) for row in expected[:3]
        ]
        assert set(own.strings) == set(itertools.chain.from_iterable(expected))
        assert pickle.loads(pickle.dumps(own)) == own
