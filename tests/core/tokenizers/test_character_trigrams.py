"""Character trigrams: windows, counts, and the vectorised encoding against a plain loop."""

import itertools
import json
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.tokenizers import character_trigrams
from st_paragram.core.tokenizers.base import load_tokenizer
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams
from st_paragram.errors import SettingsError, TextError

ANY_TEXTS = st.lists(st.text(st.characters() | st.sampled_from("ab AΣ\ud800\U0001f600"), max_size=8), max_size=6)


def trigrams(text):
    spaced = f" {text} "
    return [spaced[start : start + 3] for start in range(len(text))]


def rows_of(encoded):
    ids, offsets = encoded
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def pieces_of(tokenizer, text):
    [row] = rows_of(tokenizer.encode([text]))
    return [tokenizer.piece(each) for each in row]


def reference(tokenizer, texts, max_length=None):
    places = {trigram: place for place, trigram in enumerate(tokenizer.trigrams)}
    cased = [text.lower() if tokenizer.lower_case else text for text in texts]
    cut = [trigrams(text)[:max_length] for text in cased]
    return [[places[each] for each in row if each in places] or [len(places)] for row in cut]


def content(*strings):
    return json.dumps(strings, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab c", [" ab", "ab ", "b c", " c "]),
        ("a", [" a "]),
        ("", [None]),
        ("A\U0001f600", [" a\U0001f600", "a\U0001f600 "]),
        (" ", ["   "]),
        ("aaaa", [" aa", "aaa", "aaa", "aa "]),
        ("a\nb", [" a\n", "a\nb", "\nb "]),
    ],
)
def test_trigrams_by_hand(text, expected):
    tokenizer = CharacterTrigramTokenizer(train_trigrams([text, "xyz"]))
    assert pieces_of(tokenizer, text) == expected


def test_lone_surrogates_are_unknown():
    tokenizer = CharacterTrigramTokenizer(train_trigrams(["ab\ud800cd", "\udfffx"]))
    assert sorted(tokenizer.trigrams) == [" ab", "cd "]
    assert pieces_of(tokenizer, "ab\ud800cd") == [" ab", "cd "]
    assert pieces_of(tokenizer, "\ud800") == [None]


def test_frequency_order_and_ties():
    texts = ["ab", "AB", "b"]
    assert json.loads(train_trigrams(texts)) == [" ab", "ab ", " b "]
    assert json.loads(train_trigrams(texts, lower_case=False)) == [" AB", " ab", " b ", "AB ", "ab "]
    assert json.loads(train_trigrams(reversed(texts), 1)) == [" ab"]


@given(ANY_TEXTS.filter(any), st.integers(1, 9))
def test_counts_are_those_of_a_plain_loop(texts, size):
    counts = Counter(itertools.chain.from_iterable(trigrams(text.lower()) for text in texts))
    known = [each for each in counts if not any("\ud800" <= character <= "\udfff" for character in each)]
    expected = sorted(known, key=lambda each: (-counts[each], each))[:size]
    if known:
        assert json.loads(train_trigrams(texts, size)) == expected
    else:
        with pytest.raises(TextError):
            train_trigrams(texts, size)


def test_nothing_to_count():
    for texts in ([], ["", ""], ["\ud800"]):
        with pytest.raises(TextError, match="no trigram"):
            train_trigrams(texts)
    with pytest.raises(SettingsError, match="is 0 trigrams"):
        train_trigrams(["a"], 0)


@given(ANY_TEXTS, ANY_TEXTS, st.none() | st.integers(1, 5), st.booleans(), st.sampled_from([1, 9, 1 << 18]))
def test_encoding_is_that_of_a_plain_loop(texts, others, max_length, lower_case, batch):
    tokenizer = CharacterTrigramTokenizer(train_trigrams([*others, "ab", "b a"], 12, lower_case), lower_case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(character_trigrams, "_BATCH", batch)
        encoded = tokenizer.encode_normalized(texts, max_length)
    assert rows_of((encoded.ids, encoded.offsets)) == reference(tokenizer, texts, max_length)
    lengths = [len(text.lower() if lower_case else text) for text in texts]
    assert encoded.cut == (0 if max_length is None else sum(length > max_length for length in lengths))
    assert (encoded.ids.dtype, encoded.offsets.dtype) == ("int64", "int64")


def test_many_texts_in_little_memory_at_a_time(pairs, monkeypatch):
    texts = [text for pair in pairs for text in pair]
    whole = train_trigrams(texts)
    for name in ("_BATCH", "_MERGED"):
        monkeypatch.setattr(character_trigrams, name, 200)
    assert train_trigrams(texts) == whole
    monkeypatch.setattr(character_trigrams, "_MOST", len(json.loads(whole)) // 2)
    some = json.loads(train_trigrams(texts, 10))
    assert len(set(some) & set(json.loads(whole)[:20])) == 10
    tokenizer = CharacterTrigramTokenizer(whole)
    assert rows_of(tokenizer.encode(texts)) == reference(tokenizer, texts)


def test_max_length_counts_unknown_trigrams():
    tokenizer = CharacterTrigramTokenizer(content("b c", " c "))
    assert rows_of(tokenizer.encode(["ab c"])) == [[0, 1]]
    assert rows_of(tokenizer.encode(["ab c", "ab c"], 3)) == [[0], [0]]
    assert rows_of(tokenizer.encode(["ab c"], 2)) == [[2]]


@given(st.text(max_size=9).filter(lambda text: text == text.lower()))
def test_decode_gives_the_text_back(text):
    tokenizer = CharacterTrigramTokenizer(train_trigrams([text, "x"]))
    assert tokenizer.decode(tokenizer.encode([text])[0]) == (text or "⁇")


def test_decode_where_trigrams_are_missing():
    tokenizer = CharacterTrigramTokenizer(content(" ab", "cd ", "ab "))
    assert tokenizer.decode([]) == ""
    assert tokenizer.decode([0, 1]) == "abcd"
    assert tokenizer.decode([0, 3, 2]) == "ab⁇ab"
    assert [tokenizer.piece(each) for each in range(4)] == [" ab", "cd ", "ab ", None]


def test_equality_and_pickle():
    tokenizer = CharacterTrigramTokenizer(content(" ab"), lower_case=False)
    assert (len(tokenizer), tokenizer.unknown_id, tokenizer.options) == (2, 1, {"lower_case": False})
    assert load_tokenizer("trigram", tokenizer.content, tokenizer.options) == tokenizer
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    assert CharacterTrigramTokenizer(content(" ab")) != tokenizer


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"\xff\xfe", "not a list of trigrams"),
        (b'"abc"', "is not a list"),
        (b"[]", "an empty list"),
        (b"[1]", "1 is not a string"),
        (b'["abc", "ab"]', "'ab' has 2 characters"),
        (b'["abc", ""]', "an empty string"),
        (b'["abc", "abc"]', "more than once"),
        (b'["a\\udc00c"]', "surrogates"),
    ],
)
def test_damaged_content_is_refused(damaged, message):
    with pytest.raises(SettingsError, match=message) as caught:
        CharacterTrigramTokenizer(damaged)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{"lower_case": 1}, {"splitter": "regex"}])
def test_wrong_options_are_refused(options):
    with pytest.raises(SettingsError, match=next(iter(options))):
        load_tokenizer("trigram", b'["abc"]', options)
