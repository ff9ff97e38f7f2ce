"""Character trigrams: windows, counts, and encoding against a plain loop."""

import itertools
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams

ANY_TEXTS = st.lists(
    st.text(st.characters() | st.sampled_from("ab AΣ\ud800\U0001f600"), max_size=8), max_size=6
)


def windows(text):
    spaced = [" ", *text, " "]
    return ["".join(three) for three in zip(spaced, spaced[1:], spaced[2:], strict=False)]


def rows_of(encoded):
    return [encoded.ids[a:b].tolist() for a, b in itertools.pairwise(encoded.offsets)]


def pieces_of(tokenizer, text):
    return [tokenizer.piece(each) for each in tokenizer.encode([text])[0]]


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
        ("ab\ud800cd", [" ab", "cd "]),
    ],
)
def test_trigrams_by_hand(text, expected):
    assert pieces_of(CharacterTrigramTokenizer(train_trigrams([text, "xyz"])), text) == expected


@given(ANY_TEXTS, ANY_TEXTS, st.none() | st.integers(1, 5), st.booleans(), st.integers(1, 12))
def test_counting_and_encoding_are_those_of_a_plain_loop(
    texts, others, max_length, lower_case, size
):
    def rows(of):
        return [windows(text.lower() if lower_case else text) for text in of]

    others = [*others, "ab", "b a"]
    counts = Counter(itertools.chain.from_iterable(rows(others)))
    known = [
        each for each in counts if not any("\ud800" <= character <= "\udfff" for character in each)
    ]
    expected = sorted(known, key=lambda each: (-counts[each], each))[:size]
    tokenizer = CharacterTrigramTokenizer(train_trigrams(others, size, lower_case), lower_case)
    assert tokenizer.strings == expected
    cut = [row[:max_length] for row in rows(texts)]
    encoded = tokenizer.encode_normalized(texts, max_length)
    places = {trigram: place for place, trigram in enumerate(expected)}
    assert rows_of(encoded) == [
        [places[each] for each in row if each in places] or [len(expected)] for row in cut
    ]
    assert encoded.cut == sum(
        len(row) > len(short) for row, short in zip(rows(texts), cut, strict=True)
    )
    assert (encoded.ids.dtype, encoded.offsets.dtype) == ("int64", "int64")


def test_decode_where_trigrams_are_missing():
    tokenizer = CharacterTrigramTokenizer(content(" ab", "cd ", "ab "))
    assert [tokenizer.decode(ids) for ids in ([], [0, 1], [0, 3, 2])] == ["", "abcd", "ab⁇ab"]
