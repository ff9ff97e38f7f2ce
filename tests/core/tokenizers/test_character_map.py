"""Rules of normalization inside sentencepiece models: read, extended, followed by every reader."""

import unicodedata

import pytest

from st_paragram import Encoder
from st_paragram.core.tokenizers.character_map import rules_of, with_rules
from st_paragram.core.tokenizers.characters import CHARACTERS, simplified_characters
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.stock import convert_tokenizer
from st_paragram.errors import TextError


def test_the_rules_are_those_of_nfkc(vocabulary):
    rules = rules_of(vocabulary.content)
    assert len(rules) > 200_000
    single = [source for source in rules if len(source) == 1 and source not in CHARACTERS]
    letters = [source for source in single if unicodedata.category(source) in ("Lu", "Lo", "Nd")]
    assert len(letters) > 1_000
    table = str.maketrans(CHARACTERS)
    assert all(
        rules[letter] == unicodedata.normalize("NFKC", letter).translate(table)
        for letter in letters
    )
    assert rules["e\N{COMBINING ACUTE ACCENT}"] == "é" and rules["\x01"] == ""


@pytest.fixture(scope="module")
def further(vocabulary):
    """The vocabulary's model with further rules."""
    rules = {"q": "a", "ß": "a", "c": "a", "\u200b": "x", "\u0627": "a", "\u0131": "i"}
    return with_rules(vocabulary.content, rules)


def test_further_rules_change_what_they_name_and_nothing_else(vocabulary, further):
    more = SentencePieceTokenizer(further, **vocabulary.options)
    texts = [
        "the bat sleeps",
        "e\N{COMBINING ACUTE ACCENT}té ﬁne Ｂig",
        "qat ßat cat",
        "\N{CIRCLED LATIN SMALL LETTER Q}at 國",
    ]
    plain = ["the bat sleeps", "été fine Big", "aat aat aat", "aat 國"]
    ids = [
        each.encode([text])[0].tolist()
        for each, rows in ((more, texts), (vocabulary, plain))
        for text in rows
    ]
    assert ids[:4] == ids[4:]
    stock = convert_tokenizer(more)
    assert [row.ids for row in stock.encode_batch(texts)] == [
        more.processor.encode(text.lower()) for text in texts
    ]


def test_new_rules_replace_others_and_apply_to_their_results(further):
    rules = rules_of(further)
    assert (rules["\u200b"], rules["\ufe8d"]) == ("x", "a")  # the second is a form of alef
    # a letter with marks follows the letter that it is read as
    assert rules["\u0131\N{COMBINING DIAERESIS}"] == rules["i\N{COMBINING DIAERESIS}"] == "\u00ef"
    assert rules_of(with_rules(further, {"a": "b"}))["\ufe8d"] == "b"
    assert with_rules(further, {}) == further


def test_characters_of_unihan(tmp_path):
    path = tmp_path / "Unihan_Variants.txt"
    lines = [
        "# a comment",
        "U+570B\tkSimplifiedVariant\tU+56FD",
        "U+56FD\tkTraditionalVariant\tU+570B",
    ]
    lines += [
        "U+9918\tkSimplifiedVariant\tU+4F59 U+9980",
        "U+5FB5\tkSimplifiedVariant\tU+5F81 U+5FB5",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert simplified_characters(path) == {"國": "国", "餘": "余"}
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(TextError, match="no kSimplifiedVariant; give Unihan_Variants"):
        simplified_characters(path)


@pytest.mark.parametrize("name", ["p-sp-mini", "p-sp-base"])
def test_shipped_models_read_traditional_chinese_as_simplified(name):
    encoder = Encoder(name)
    assert encoder.tokenize("國會議員擔心") == encoder.tokenize("国会议员担心")


@pytest.mark.parametrize("name", ["p-sp-mini", "p-sp-base"])
def test_shipped_models_read_variants_of_arabic_letters_as_one(name):
    encoder = Encoder(name)
    assert encoder.tokenize("أُسْتاذة إلى مستشفى") == encoder.tokenize("استاذه الي مســتشفي")
