"""Characters that are read as others or left out: the same ids in every reader and model."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from st_paragram import Encoder, load, sample_pairs
from st_paragram.cli.main import main
from st_paragram.core.tokenizers.character_map import rules_of
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams
from st_paragram.core.tokenizers.characters import CHARACTERS
from st_paragram.core.tokenizers.loading import load_tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.stock import convert_tokenizer, convert_words
from st_paragram.core.tokenizers.words import WordTokenizer, train_words

#: By kind: texts that look the same, the first as keyboards usually write it.
EQUAL = {
    "soft hyphen": ("die zusammenarbeit", "die zusammen\u00adarbeit"),
    "zero-width space": ("the cooperation", "the coop\u200beration"),
    "zero-width non-joiner": ("the cooperation", "the coop\u200ceration"),
    "zero-width joiner": ("the cooperation", "the coop\u200deration"),
    "word joiner": ("the cooperation", "the\u2060 coop\u2060eration"),
    "invisible times": ("2x", "2\u2062x"),
    "isolates": ("the cat sleeps", "\u2066the cat\u2069 sleeps"),
    "embeddings of direction": ("the cat sleeps", "\u202bthe c\u202cat sleeps"),
    "marks of direction": ("the cat sleeps", "the c\u200eat\u200f sle\u061ceps"),
    "byte order mark": ("the cat sleeps", "\ufeffthe c\ufeffat sleeps"),
    "emoji variant": ("i love it ❤", "i love it ❤\ufe0f"),
    "text variant": ("i love it ❤", "i love it ❤\ufe0e"),
    "variant of a character": ("国会", "国\U000e0100会"),
    "Mongolian variant": ("\u1820\u1821", "\u1820\u180b\u1821\u180e"),
    "grapheme joiner": ("the cooperation", "the coo\u034fperation"),
    "fillers of Hangul": ("각가", "각\u3164\u115f\u1160\uffa0가"),
    "control character": ("the cat sleeps", "\x84the cat\x93 sle\x9feps"),
    "no-break space": ("the cat sleeps", "the\u00a0cat\u202fsleeps"),
    "other spaces": ("the cat sleeps", "the\u2009cat\u3000sleeps"),
    "line breaks": ("the cat sleeps", "the\x0bcat\x85sleeps\u2028"),
    "Braille space": ("the cat sleeps", "the\u2800cat sleeps"),
    "Persian letters": ("في الكتاب", "فی الکتاب"),
    "forms of Persian letters": ("في الكتاب", "ف\ufbfd الﮐتاب"),
    "Persian letter with hamza": ("جزئ", "جزی\u0654"),
    "tatweel": ("محمد", "محـمد"),
    "Arabic digits": ("في عام 2024", "في عام ٢٠٢٤"),
    "Persian digits": ("في عام 2024", "في عام ۲۰۲۴"),
    "Arabic decimals": ("1,024.5", "١٬٠٢٤٫٥"),
    "Devanagari digits": ("in 2024", "in २०२४"),
    "full-width digits": ("in 2024", "in ２０２４"),
    "mathematical digits": ("in 2024", "in 𝟐𝟎𝟐𝟒"),
    "composed letter": ("café", "cafe\u0301"),
}
PAIRS = pytest.mark.parametrize(("plain", "variant"), EQUAL.values(), ids=EQUAL.keys())


@pytest.fixture(scope="module")
def trained() -> SentencePieceTokenizer:
    """A new vocabulary, trained on text that has the characters."""
    texts = [text for kind, pair in EQUAL.items() for text in pair if not kind.startswith("forms")]
    return SentencePieceTokenizer(train_vocabulary(texts * 5, 300, character_coverage=1.0))


@pytest.fixture(scope="module", params=["p-sp-mini", "p-sp-base", "trained"])
def readers(request, trained) -> tuple[SentencePieceTokenizer, Tokenizer]:
    """A tokenizer and its conversion for readers without this package."""
    tokenizer = trained if request.param == "trained" else Encoder(request.param).tokenizer
    return tokenizer, convert_tokenizer(tokenizer)


@PAIRS
def test_texts_that_look_the_same_have_the_same_ids(readers, plain, variant):
    tokenizer, stock = readers
    ids = tokenizer.encode([plain])[0].tolist()
    assert ids and tokenizer.encode([variant])[0].tolist() == ids
    whole = tokenizer.processor.encode(plain)
    assert tokenizer.processor.encode(variant) == whole
    assert stock.encode(plain).ids == stock.encode(variant).ids == whole


def test_every_rule_holds_inside_words_in_every_reader(readers):
    tokenizer, stock = readers
    contexts = ["{}", "coop{}eration", "في الكت{}اب", "国{}会", "각{}가", "1{}\u20e3", "ب{}\u064e"]
    variants = [context.format(character) for context in contexts for character in CHARACTERS]
    plain = [context.format(read) for context in contexts[:5] for read in CHARACTERS.values()]
    ids = tokenizer.processor.encode(variants)
    assert ids[: len(plain)] == tokenizer.processor.encode(plain)
    assert [encoding.ids for encoding in stock.encode_batch(variants)] == ids
    numbers, offsets = tokenizer.encode(variants)
    rows = [row.tolist() for row in np.split(numbers, offsets[1:-1])]
    unknown = tokenizer.unknown_id
    assert rows == [[number for number in row if number != unknown] or [unknown] for row in ids]


@pytest.mark.parametrize("letter", ["\u06a9", "\u06cc"])
def test_letters_with_a_rule_keep_their_vowel_signs_in_every_reader(trained, letter):
    texts = [f"{letter}{sign}\u062a" for sign in "\u064b\u064e\u0651\u0654"]
    assert [
        encoding.ids for encoding in convert_tokenizer(trained).encode_batch(texts)
    ] == trained.processor.encode(texts)


WORDS = {
    "zusammenarbeit": "zusammen\u00adarbeit", "2024": "٢٠٢٤", "كتاب": "کتاب",
    "the cat": "the\u2800cat",
    "❤": "❤\ufe0f",
}  # fmt: skip


@pytest.mark.parametrize(("plain", "variant"), WORDS.items(), ids=map(ascii, WORDS))
def test_words_and_trigrams_with_the_option_read_them_alike(plain, variant):
    words = WordTokenizer(train_words([plain]), characters=True)
    trigrams = CharacterTrigramTokenizer(train_trigrams([plain]), characters=True)
    for tokenizer in (words, trigrams):
        assert tokenizer.encode([variant])[0].tolist() == tokenizer.encode([plain])[0].tolist()
    assert convert_words(words).encode(variant).ids == words.encode([plain])[0].tolist()


def test_word_lists_of_earlier_versions_keep_their_options_and_ids():
    words = WordTokenizer(b'["coop","eration"]')
    assert words.options == {"lower_case": True, "splitter": "regex", "language": "en"}
    assert words.encode(["coop\u00aderation"])[0].tolist() == [0, 1]
    assert CharacterTrigramTokenizer(b'[" ab"]').options == {"lower_case": True}
    assert load_tokenizer("word", words.content, words.options | {"characters": True}) != words


def test_the_digits_are_those_of_unicode():
    digits = [character for character in CHARACTERS if unicodedata.category(character) == "Nd"]
    assert len(digits) == 580
    assert all(CHARACTERS[digit] == str(unicodedata.decimal(digit)) for digit in digits)


def test_a_new_vocabulary_is_trained_without_the_characters(trained):
    pieces = [trained.piece(number) or "" for number in range(len(trained))]
    assert not set("".join(pieces)) & set(CHARACTERS)
    texts = [english for english, _ in sample_pairs("es", 200)]
    other = SentencePieceTokenizer(train_vocabulary(texts, 300, characters={}))
    new = SentencePieceTokenizer(train_vocabulary(texts, 300))
    assert [new.piece(number) for number in range(len(new))] == [
        other.piece(number) for number in range(len(other))
    ]
    assert other.encode(["th\u200be"])[0].tolist() != new.encode(["th\u200be"])[0].tolist()


@pytest.mark.parametrize("name", ["p-sp-mini", "p-sp-es"])
def test_included_models_read_them_in_plain_sentence_transformers(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["get", name]) == 0
    plain, variants = zip(*EQUAL.values(), strict=True)
    expected = Encoder(name).encode(plain, normalize_embeddings=True)
    for model in (Encoder(name), load(name, device="cpu"), SentenceTransformer(name, device="cpu")):
        embeddings = model.encode(list(plain), normalize_embeddings=True)
        np.testing.assert_allclose(embeddings, expected, atol=1e-6)
        np.testing.assert_array_equal(
            model.encode(list(variants), normalize_embeddings=True), embeddings
        )


@pytest.mark.parametrize("name", ["p-sp-mini", "p-sp-base"])
def test_included_models_have_the_rules(name):
    rules = rules_of(Encoder(name).tokenizer.content)
    assert {character: rules[character] for character in CHARACTERS} == CHARACTERS
