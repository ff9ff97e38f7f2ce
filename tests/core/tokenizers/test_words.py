"""Words: splitting, counting, encoding, and the tokenizer that sentence-transformers reads."""

import itertools
import json
import pickle
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from st_paragram.core.tokenizers.base import load_tokenizer
from st_paragram.core.tokenizers.stock_words import convert_words
from st_paragram.core.tokenizers.words import Splitter, WordTokenizer, count_words, train_words
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError

HARD_TEXTS = [
    "",
    " \t\r\n\x00\x1f\x85\xa0\u2028\u3000",
    "Don't stop, e.g. 3.5% (x_y)!",
    "El NIÑO comió cafe\u0301 según Straße",
    "النَّهْرُ يجري، ٣٫٥",
    "हिन्दी में क़लम के साथ दुर्गा",
    "河水流过旧磨坊。孩子在等船！",
    "can\u200cnot \u00ad soft\u00adhyphen zero\u200bwidth 👩\u200d👧 👍🏽 \ufeff",
    "tab\tbetween\x01control\x7fcharacters",
    "ΟΔΟΣ ΣΟΦΌΣ Σ ΑΣ. ΑΣ'Α Σ\u0301",
    "İSTANBUL Iğdır i\u0307",
    "ⅷ ² ½ ① _ __ a_b ٪ ﬁ ﷺ",
    "<unknown word> unknown word",
]
KNOWN = ["the", "river", "runs", ".", "niño", "σοφός", "i̇stanbul", "हिन्दी", "_", "𝒳"]


def words_of(*words: str) -> bytes:
    return json.dumps(words, ensure_ascii=False).encode()


def rows_of(encoded):
    ids, offsets = encoded
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def split(text):
    return list(count_words([text]))


@pytest.fixture(scope="module")
def tokenizer():
    return WordTokenizer(words_of("the", ".", "river", "runs"))


def test_words_by_hand():
    expected = {
        "Don't stop, e.g. 3.5%": ["don", "'", "t", "stop", ",", "e", ".", "g", "3", "5", "%"],
        "a_b हिन्दी में cafe\u0301": ["a_b", "हिन्दी", "में", "cafe\u0301"],
        "河水 a\tb\x00c\u2028d": ["河水", "a", "b", "c", "d"],
        "a\ud800b 👍🏽": ["a", "b", "👍", "🏽"],
        "\u0301 x\u200cy": ["\u0301", "x", "\u200c", "y"],
    }
    for text, words in expected.items():
        assert split(text) == words


def test_frequency_order_and_ties():
    texts = ["b a B c", "a b d", "", "e e"]
    assert count_words(texts) == Counter({"b": 3, "a": 2, "e": 2, "c": 1, "d": 1})
    assert count_words(["B b"], lower_case=False) == Counter("Bb")
    assert json.loads(train_words(texts)) == ["b", "a", "e", "c", "d"]
    assert json.loads(train_words(iter(texts), 4)) == ["b", "a", "e", "c"]
    assert train_words(random.Random(1).sample(texts, 4), 3) == train_words(texts, 3) == b'["b","a","e"]'


def test_nothing_to_count():
    for texts in ([], ["", " \t"]):
        with pytest.raises(TextError, match="no word"):
            train_words(texts)
    with pytest.raises(SettingsError, match="is 0 words"):
        train_words(["a"], 0)


def test_unknown_words_are_dropped(tokenizer):
    assert (len(tokenizer), tokenizer.unknown_id) == (5, 4)
    texts = ["The river RUNS.", "the old river", "", "an old mill", " \n"]
    assert rows_of(tokenizer.encode(texts)) == [[0, 2, 3, 1], [0, 2], [4], [4], [4]]
    assert rows_of(tokenizer.encode([])) == []
    assert rows_of(WordTokenizer(tokenizer.content, lower_case=False).encode(["The river"])) == [[2]]


def test_max_length_counts_unknown_words(tokenizer):
    texts = ["the old river runs", "old the", "the"]
    assert rows_of(tokenizer.encode(texts, 2)) == [[0], [0], [0]]
    assert rows_of(tokenizer.encode(texts, 1)) == [[0], [4], [0]]
    assert tokenizer.encode_normalized(texts, 2).cut == 1
    assert tokenizer.encode_normalized(texts).cut == 0


def test_decode_and_pieces(tokenizer):
    assert tokenizer.decode(tokenizer.encode(["The river, runs."])[0]) == "the river runs ."
    assert tokenizer.decode([0, 4]) == "the ⁇"
    assert [tokenizer.piece(each) for each in range(5)] == ["the", ".", "river", "runs", None]


def test_equality_and_pickle(tokenizer):
    options = {"lower_case": True, "splitter": "regex", "language": "en"}
    assert tokenizer.options == options
    assert load_tokenizer("word", tokenizer.content, options) == tokenizer
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    assert WordTokenizer(tokenizer.content, lower_case=False) != tokenizer


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "not a list of words"),
        (b"{", "not a list of words"),
        (b'{"a": 1}', "is not a list"),
        (b"[]", "an empty list"),
        (b'["a", 1]', "1 is not a string"),
        (b'["a", null]', "None is not a string"),
        (b'["a", ""]', "an empty string"),
        (b'["a", "b", "a"]', "'a' is there more than once"),
        (b'["a", "b c"]', "'b c' has a space"),
        (b'["a", "\\ud800"]', "surrogates"),
        (b"[" * 99 + b"]" * 99, "nested"),
    ],
)
def test_damaged_content_is_refused(content, message):
    with pytest.raises(SettingsError, match=message) as caught:
        WordTokenizer(content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower_case": "no"}, "lower_case is 'no'"),
        ({"language": 3}, "language is 3"),
        ({"splitter": "axe"}, "'axe' is not a valid"),
        ({"stemming": True}, "stemming"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        load_tokenizer("word", b'["a"]', options)


def check_stock(words: bytes, texts: list[str]) -> None:
    for lower_case in (True, False):
        own = WordTokenizer(words, lower_case)
        stock = Tokenizer.from_str(convert_words(own).to_str())
        assert stock.get_vocab_size() == len(own)
        for text in texts:
            ids = stock.encode(text, add_special_tokens=False).ids
            [known] = rows_of(own.encode([text]))
            assert ([each for each in ids if each != own.unknown_id] or [own.unknown_id]) == known
            split_up = [stock.decode([each]) for each in ids]
            assert len(split_up) == sum(count_words([text], lower_case).values())


def test_stock_tokenizer_on_hard_texts():
    check_stock(train_words(HARD_TEXTS), HARD_TEXTS)
    check_stock(train_words(HARD_TEXTS, lower_case=False), HARD_TEXTS)
    check_stock(words_of("the", "unknown", "word"), HARD_TEXTS)


@settings(max_examples=150)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cn"]) | st.sampled_from("ΣσİIı_'\u0301\u200c\t٣ह\u094d"))
        | st.sampled_from(KNOWN),
        min_size=1,
        max_size=4,
    )
)
def test_stock_tokenizer_on_any_text(texts):
    joined = " ".join(texts)
    vocabulary = sorted({*count_words([joined, "the river"]), *count_words([joined], lower_case=False)})
    check_stock(words_of(*vocabulary), [joined, "".join(texts)])


def test_moses_splits_as_sacremoses_does():
    sacremoses = pytest.importorskip("sacremoses")
    texts = ["Don't stop, e.g. 3.5% & <that>.", "L'eau coule.", "a\ud800b", ""]
    for language in ("en", "fr"):
        moses = sacremoses.MosesTokenizer(lang=language)
        clean = [text.lower().replace("\ud800", "?") for text in texts]
        expected = [moses.tokenize(text, escape=False) for text in clean]
        assert count_words(texts, True, "moses", language) == Counter(itertools.chain.from_iterable(expected))
        own = WordTokenizer(train_words(texts, 99, True, Splitter.MOSES, language), True, "moses", language)
        assert [own.decode(row) for row in rows_of(own.encode(texts))[:3]] == [" ".join(row) for row in expected[:3]]
        assert pickle.loads(pickle.dumps(own)) == own


def test_moses_has_no_stock_form():
    pytest.importorskip("sacremoses")
    with pytest.raises(ModelDirectoryError, match=r"Moses cannot be written as a tokenizer.json; .*regex"):
        convert_words(WordTokenizer(b'["a"]', splitter="moses"))
