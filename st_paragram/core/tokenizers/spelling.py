"""Spellings that writers exchange, as rules from one to the other.

A vocabulary that is trained with these rules reads both spellings as the same word.
"""

from __future__ import annotations

from itertools import product
from unicodedata import normalize

#: Quotation marks, apostrophes and dashes, which keyboards and editors exchange.
PUNCTUATION: dict[str, str] = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u02b9\u02bb\u05f3", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u05f4", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u05be", "-"),
}

#: Letters: Romanian with a comma or a cedilla, Russian yo, French oe, and ha of Urdu. Vowel points
#: and accents of Hebrew are left out.
EXCHANGED_LETTERS: dict[str, str] = {
    "ș": "ş",
    "ț": "ţ",
    "ё": "е",
    "œ": "oe",
    "ہ": "ه",
    "ۃ": "ه",
    **dict.fromkeys(map(chr, (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7)), ""),
}

_VIRAMA_AND_JOINER = "\u0d4d\u200d"
#: Malayalam: consonants with a joiner are chillu letters, two spellings of "nta" are the third, and
#: old signs of au and of ra are the new ones.
MALAYALAM: dict[str, str] = {
    f"ണ{_VIRAMA_AND_JOINER}": "ൺ",
    f"ന{_VIRAMA_AND_JOINER}": "ൻ",
    f"ര{_VIRAMA_AND_JOINER}": "ർ",
    f"ല{_VIRAMA_AND_JOINER}": "ൽ",
    f"ള{_VIRAMA_AND_JOINER}": "ൾ",
    f"ക{_VIRAMA_AND_JOINER}": "ൿ",
    f"ന{_VIRAMA_AND_JOINER}റ": "ന്റ",
    "ൻറ": "ന്റ",
    "ൌ": "ൗ",
    "ൎ": "ർ",
}
#: Bengali: ta with a joiner is khanda ta.
BENGALI: dict[str, str] = {"ত\u09cd\u200d": "ৎ"}

#: Nasal consonants of Devanagari and the consonants before which they may be written as a dot.
_NASALS = {"ङ": "कखगघ", "ञ": "चछजझ", "ण": "टठडढ", "न": "तथदध", "म": "पफबभ"}
#: Vietnamese pairs of vowels whose tone mark is on the first or on the second vowel.
_VOWELS = (("o", "a"), ("o", "e"), ("u", "y"))
_TONES = "\u0300\u0301\u0303\u0309\u0323"
#: Latin letters that look like Cyrillic ones. Serbian text whose alphabet was converted often keeps
#: some of them inside its words.
LOOK_ALIKES = {"a": "а", "e": "е", "j": "ј", "o": "о"}
CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяђєіїјљњћўџґ"


def devanagari() -> dict[str, str]:
    """Return rules that write nasals before consonants, and on vowels, as a dot (anusvara)."""
    rules = {"ँ": "ं"}
    for nasal, consonants in _NASALS.items():
        for consonant in consonants:
            rules[f"{nasal}्{consonant}"] = f"ं{consonant}"
    return rules


def vietnamese() -> dict[str, str]:
    """Return rules that put tone marks on the first of two vowels: hoà is read as hòa."""
    rules = {}
    for (first, second), tone in product(_VOWELS, _TONES):
        rules[first + normalize("NFC", second + tone)] = normalize("NFC", first + tone) + second
    return rules


def look_alikes() -> dict[str, str]:
    """Return rules that read Latin letters in Cyrillic words as the letters that they look like.

    A rule has a Cyrillic letter with up to two Latin a, e, j or o on each side, in lower case.
    """
    sides = [""]
    for length in (1, 2):
        sides += map("".join, product(LOOK_ALIKES, repeat=length))
    table = str.maketrans(LOOK_ALIKES)
    rules = {}
    for before, letter, after in product(sides, CYRILLIC, sides):
        if before or after:
            word = before + letter + after
            rules[word] = word.translate(table)
    return rules


def sequences() -> dict[str, str]:
    """Return the rules for two or more characters, other than those of look-alikes."""
    return {**MALAYALAM, **BENGALI, **devanagari(), **vietnamese()}


def spelling_rules() -> dict[str, str]:
    """Return all rules of this file, for text in lower case."""
    return {
        **PUNCTUATION,
        **EXCHANGED_LETTERS,
        **sequences(),
        **look_alikes(),
    }
