import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.tokenizers.flat_ids import drop_unknown
from st_paragram.core.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.sentencepiece_format import parse_model
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError


def decode(vocabulary, ids, offsets):
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def test_encode_equals_sentencepiece_text_by_text(vocabulary, pairs):
    texts = [text for pair in pairs[:50] for text in pair]
    expected = [vocabulary.processor.encode(text.lower()) for text in texts]
    assert decode(vocabulary, *vocabulary.encode(texts)) == expected


def test_unknown_pieces_are_dropped_and_empty_texts_are_the_unknown_id(vocabulary):
    known = vocabulary.processor.encode("ba ce")
    texts = ["", "   ", "Ωж", "ba ce", "ba Ω ce"]
    rows = decode(vocabulary, *vocabulary.encode(texts))
    assert rows[0] == rows[1] == [vocabulary.unknown_id]
    assert rows[3] == known
    assert vocabulary.unknown_id not in rows[4] and set(known) <= set(rows[4])
    assert rows[2][-1] != vocabulary.unknown_id or rows[2] == [vocabulary.unknown_id]


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=8))
def test_drop_unknown_matches_a_plain_loop(rows):
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.array([i for row in rows for i in row], dtype=np.int64)
    expected = [[i for i in row if i != 2] or [2] for row in rows]
    assert decode(None, *drop_unknown(ids, counts, 2)) == expected


def test_truncation_counts_pieces(vocabulary):
    ids, offsets = vocabulary.encode(["ba ce di fo gu ha je"], max_length=3)
    assert len(ids) == 3 and offsets.tolist() == [0, 3]


def test_lower_case_is_a_setting(vocabulary):
    upper = SentencePieceTokenizer(vocabulary.model_proto, lower_case=False)
    assert decode(upper, *upper.encode(["ba"])) == decode(vocabulary, *vocabulary.encode(["BA"]))
    assert decode(upper, *upper.encode(["BA"])) != decode(vocabulary, *vocabulary.encode(["BA"]))


def test_lone_surrogates_do_not_break_a_batch(vocabulary):
    assert len(vocabulary.encode(["ba \ud800 ce", "di"])[1]) == 3


def test_ids_outside_the_vocabulary_are_refused(vocabulary):
    with pytest.raises(SettingsError, match=str(len(vocabulary))):
        vocabulary.pack([[1, len(vocabulary)]])


def test_pickle_keeps_everything(vocabulary):
    copy = pickle.loads(pickle.dumps(SentencePieceTokenizer(vocabulary.model_proto, lower_case=False)))
    assert (copy.lower_case, len(copy)) == (False, len(vocabulary))


def test_jieba_segments_texts_with_han_characters_only(vocabulary):
    pytest.importorskip("jieba")
    segmenting = SentencePieceTokenizer(vocabulary.model_proto, segmentation=Segmentation.JIEBA)
    assert segmenting.normalize("我们在公园里散步").count(" ") >= 2
    assert segmenting.normalize("Don't stop, e.g. 3.5") == "don't stop, e.g. 3.5"


def test_little_text_gives_a_small_vocabulary_and_none_an_error():
    assert len(SentencePieceTokenizer(train_vocabulary(["a b c"] * 3, 50_000))) < 20
    with pytest.raises(TextError, match="no sentence"):
        train_vocabulary([])


def test_damaged_model_is_named():
    with pytest.raises(SettingsError, match="not a sentencepiece model"):
        SentencePieceTokenizer(b"nonsense")


def test_pieces_that_are_not_utf8_are_told_where_they_show(vocabulary):
    piece = max((vocabulary.piece(number) or "" for number in range(len(vocabulary))), key=len).encode()
    damaged = SentencePieceTokenizer(vocabulary.content.replace(piece, b"\xff" * len(piece)))
    number = [vocabulary.piece(number) for number in range(len(vocabulary))].index(piece.decode())
    assert len(damaged.encode(["ba ce", "\u03a9"])[1]) == 3
    with pytest.raises(SettingsError, match="not UTF-8"):
        damaged.piece(number)
    with pytest.raises(SettingsError, match="not UTF-8"):
        damaged.decode([number])


def test_rules_that_are_not_utf8_are_left_to_sentencepiece(vocabulary):
    end = len(vocabulary.content) - 100
    rules = vocabulary.content.index("カ".encode())
    damaged = bytearray(vocabulary.content)
    damaged[rules:end] = bytes(0xA9 if byte > 0x7F else byte for byte in damaged[rules:end])
    tokenizer, texts = SentencePieceTokenizer(bytes(damaged)), ["ｶ ﾊﾟ ｷ ㍍ ㌔", "ba ce"]
    expected = [tokenizer.processor.encode(text) for text in texts]
    assert tokenizer.pack(expected)[0].tolist() == tokenizer.encode(texts)[0].tolist()


def test_a_number_without_an_end_is_no_model():
    with pytest.raises(ModelDirectoryError, match="more than ten bytes"):
        parse_model(b"\x08" + b"\xff" * 1_000_000)


def test_pieces_as_they_are_shown(vocabulary):
    shown = [vocabulary.piece(piece_id) for piece_id in range(len(vocabulary))]
    assert shown[:3] == [None, None, None] and None not in shown[3:]  # unknown, <s>, </s>
    ids = vocabulary.encode(["ba ce"])[0].tolist()
    assert "".join(vocabulary.piece(piece_id) for piece_id in ids) == "\u2581ba\u2581ce"
    assert vocabulary.piece(vocabulary.encode(["ba ce"])[0][0]) == vocabulary.piece(ids[0])  # also of numpy's numbers
