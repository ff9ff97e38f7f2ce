"""The base class of tokenizers: creation from kind, content and options, equality, refusals."""

import copy
import pickle

import pytest

from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer
from st_paragram.core.tokenizers.loading import load_tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.words import WordTokenizer
from st_paragram.errors import SettingsError

WORD_OPTIONS = {"lower_case": True, "splitter": "regex", "language": "en"}


@pytest.mark.parametrize(
    ("kind", "content", "options"),
    [
        (SentencePieceTokenizer, None, {"lower_case": False, "segmentation": "none"}),
        (SentencePieceTokenizer, None, {"lower_case": True, "segmentation": "jieba"}),
        (
            SentencePieceTokenizer,
            None,
            {"lower_case": True, "segmentation": "none", "dropped": [4, 7]},
        ),
        (WordTokenizer, b'["the","river"]', WORD_OPTIONS),
        (CharacterTrigramTokenizer, b'[" ab"]', {"lower_case": False}),
    ],
)
def test_equal_by_content_and_options(vocabulary, kind, content, options):
    if options.get("segmentation") == "jieba":
        pytest.importorskip("jieba")
    content = content or vocabulary.content
    tokenizer = kind(content, **options)
    tokenizer.encode(["ba"])  # what it has learned stays behind
    copies = [
        kind(bytes(bytearray(content)), **options),
        load_tokenizer(kind.kind, content, options),
    ]
    for same in (*copies, copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert same == tokenizer and hash(same) == hash(tokenizer) and same.options == options
    assert tokenizer != kind(content, lower_case=not options["lower_case"]) and tokenizer != content


@pytest.mark.parametrize(
    ("kind", "content", "options", "message"),
    [
        (
            "syllables",
            b"",
            {},
            "no tokenizer of kind 'syllables'; this version knows sentencepiece",
        ),
        ("sentencepiece", b"nonsense", {}, "not a sentencepiece model"),
        ("sentencepiece", None, {"stemming": True}, "cannot have the options {'stemming': True}"),
        (
            "sentencepiece",
            None,
            {"segmentation": "mecab"},
            "cannot have the options .*'mecab' is not a valid",
        ),
        ("word", b'{"a": 1}', {}, "is not a list"),
        ("word", b'["a", "b", "a"]', {}, "1 occur twice"),
        ("word", b'["a"]', {"lower_case": "no"}, "lower_case is 'no'"),
        ("trigram", b'["abc", "ab"]', {}, "'ab' has 2 characters"),
    ],
)
def test_refused_by_name(vocabulary, kind, content, options, message):
    with pytest.raises(SettingsError, match=message) as caught:
        load_tokenizer(kind, vocabulary.content if content is None else content, options)
    assert "\n" not in str(caught.value)
