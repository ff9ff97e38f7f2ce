import itertools
import struct

import pytest
import sentencepiece

from st_paragram.core.tokenizers.loading import load_tokenizer
from st_paragram.core.tokenizers.model_file import SCORE_STEP, round_scores
from st_paragram.core.tokenizers.sentencepiece import (
    Segmentation,
    SentencePieceTokenizer,
    train_vocabulary,
)
from st_paragram.errors import SettingsError, TextError


def rows_of(ids, offsets):
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def test_encode_equals_sentencepiece_text_by_text(vocabulary, pairs):
    texts = [text for pair in pairs[:50] for text in pair]
    expected = [vocabulary.processor.encode(text.lower()) for text in texts]
    assert rows_of(*vocabulary.encode(texts)) == rows_of(*vocabulary.encode_rows(texts)) == expected
    ids = vocabulary.encode(["ba CE"])[0]
    assert (
        "".join(map(vocabulary.piece, ids)) == "\u2581ba\u2581ce"
        and vocabulary.decode(ids) == "ba ce"
    )


def test_unknown_pieces_are_dropped_and_empty_texts_are_the_unknown_id(vocabulary):
    known = vocabulary.processor.encode("ba ce")
    rows = rows_of(*vocabulary.encode(["", "   ", "ba ce", "ba Ω ce"]))
    assert rows[0] == rows[1] == [vocabulary.unknown_id]
    assert rows[2] == known
    assert vocabulary.unknown_id not in rows[3] and set(known) <= set(rows[3])


def test_what_a_model_may_be(vocabulary, tmp_path):
    path = tmp_path / "spm.model"
    path.write_bytes(vocabulary.content)
    for model in (
        path,
        str(path),
        vocabulary.content,
        sentencepiece.SentencePieceProcessor(model_file=str(path)),
    ):
        assert SentencePieceTokenizer(model) == vocabulary
    with pytest.raises(
        SettingsError, match=r"missing\.model: not a sentencepiece model \(No such file"
    ):
        SentencePieceTokenizer("missing.model")


def test_unknown_tokens_are_counted(vocabulary):
    texts = ["ba \ue000\ue001 ce", "\ue000", "", "ba\ud800"]
    rows = vocabulary.processor.encode(["ba \ue000\ue001 ce", "\ue000", "", "ba?"])
    unknown = [row.count(vocabulary.unknown_id) for row in rows]
    assert vocabulary.count_tokens(texts) == (sum(map(len, rows)), sum(unknown))
    assert unknown[:3] == [1, 1, 0]  # a run of unknown characters is one token
    first = int(vocabulary.encode(["ba"])[0][0])
    some = SentencePieceTokenizer(vocabulary.content, dropped=[first])
    assert some.count_tokens(["ba"]).unknown == 1 and vocabulary.count_tokens(["ba"]).unknown == 0


def test_dropped_ids(vocabulary):
    texts = ["ba ce di", "ba", "fo gu", ""]
    dropped = sorted({*vocabulary.encode(["ba ce"])[0].tolist()})
    some = SentencePieceTokenizer(vocabulary.content, dropped=dropped)
    expected = [
        [i for i in row if i not in dropped] or [0] for row in rows_of(*vocabulary.encode(texts))
    ]
    assert rows_of(*some.encode(texts)) == rows_of(*some.encode_rows(texts)) == expected
    assert rows_of(*some.pack(rows_of(*vocabulary.encode(texts)))) == expected
    assert some.encode_normalized(texts, 1).cut == vocabulary.encode_normalized(texts, 1).cut > 0
    assert [some.piece(each) for each in dropped] == [None] * len(dropped) and len(some) == len(
        vocabulary
    )
    with pytest.raises(SettingsError, match="cannot have the options"):
        load_tokenizer(some.kind, some.content, {"dropped": [len(vocabulary)]})


def test_jieba_segments_texts_with_han_characters_only(vocabulary):
    pytest.importorskip("jieba")
    segmenting = SentencePieceTokenizer(vocabulary.content, segmentation=Segmentation.JIEBA)
    assert segmenting.normalize("我们在公园里散步").count(" ") >= 2
    assert segmenting.normalize("Don't stop, e.g. 3.5") == "don't stop, e.g. 3.5"


def test_little_text_gives_a_small_vocabulary_and_none_an_error():
    assert len(SentencePieceTokenizer(train_vocabulary(["a b c"] * 3, 50_000))) < 20
    for texts in ([], ["a b c d e f g"] * 3):
        with pytest.raises(TextError, match="a vocabulary of 5 tokens cannot"):
            train_vocabulary(texts, 5)


def test_rounding_changes_scores_alone(vocabulary):
    scores = [vocabulary.processor.get_score(each) for each in range(len(vocabulary))]
    assert (
        all(score % SCORE_STEP == 0 for score in scores)
        and round_scores(vocabulary.content) == vocabulary.content
    )
    piece = vocabulary.piece(5).encode()
    before = b"\n" + bytes([len(piece)]) + piece + b"\x15" + struct.pack("<f", scores[5])
    assert vocabulary.content.count(before) == 1
    moved = before[:-4] + struct.pack("<f", scores[5] + SCORE_STEP / 3)
    assert round_scores(vocabulary.content.replace(before, moved)) == vocabulary.content
