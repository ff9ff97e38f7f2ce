"""The protocol of tokenizers: made from kind, content and options, and equal by them."""

import copy
import pickle

import pytest

from st_paragram.core.tokenizers.base import load_tokenizer
from st_paragram.core.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer
from st_paragram.errors import SettingsError


def test_equal_by_content_and_options(vocabulary):
    same = SentencePieceTokenizer(bytes(bytearray(vocabulary.content)))
    cased = SentencePieceTokenizer(vocabulary.content, lower_case=False)
    assert same == vocabulary and hash(same) == hash(vocabulary)
    assert cased != vocabulary and len({same, vocabulary, cased}) == 2
    assert vocabulary != vocabulary.content


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda tokenizer: pickle.loads(pickle.dumps(tokenizer))])
def test_copies_are_equal(vocabulary, copied):
    tokenizer = SentencePieceTokenizer(vocabulary.content, lower_case=False)
    tokenizer.encode(["ba"])  # what it has learnt stays behind
    assert copied(tokenizer) == tokenizer


@pytest.mark.parametrize(
    ("kind", "content", "options", "message"),
    [
        ("syllables", b"", {}, "no tokenizer of kind 'syllables'; this version knows sentencepiece"),
        ("sentencepiece", b"nonsense", {}, "not a sentencepiece model"),
        ("sentencepiece", None, {"stemming": True}, "cannot have the options {'stemming': True}"),
        ("sentencepiece", None, {"segmentation": "mecab"}, "cannot have the options .*'mecab' is not a valid"),
    ],
)
def test_refused_by_name(vocabulary, kind, content, options, message):
    with pytest.raises(SettingsError, match=message):
        load_tokenizer(kind, vocabulary.content if content is None else content, options)


def test_segmentation_by_name(vocabulary):
    pytest.importorskip("jieba")
    options = SentencePieceTokenizer(vocabulary.content, True, Segmentation.JIEBA).options
    assert options == {"lower_case": True, "segmentation": "jieba"}
    made = load_tokenizer("sentencepiece", vocabulary.content, options)
    assert made.segmentation is Segmentation.JIEBA and made.options == options
